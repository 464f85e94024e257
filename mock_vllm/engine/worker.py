"""One rank: the session rules around its transfer engine and its model.

Follows vLLM 0.21.0, `vllm.v1.worker.gpu_worker.Worker`.
"""

from __future__ import annotations

from typing import Any

from mock_vllm.engine.digests import Received
from mock_vllm.engine.session import Session
from mock_vllm.engine.transfer import TransferEngine
from mock_vllm.errors import WorkerError
from mock_vllm.model.loader import ModelLoader
from mock_vllm.model.weights import WeightStore
from mock_vllm.profiles.profile import Profile


class Worker:
    """The methods that `collective_rpc` reaches. Used by its own thread only, except for `abandon` and reads.

    Args:
        rank: worker rank from 0.
        profile: the release.
        transfer: this rank's transfer engine, or None without a weight transfer config.
        loader: what is served.
        store: the weights that the loader keeps.
    """

    def __init__(
        self, rank: int, profile: Profile, transfer: TransferEngine | None, loader: ModelLoader, store: WeightStore
    ) -> None:
        self.rank = rank
        self.session = Session()
        self.group: dict[str, Any] | None = None
        self.store = store
        self._profile = profile
        self._transfer = transfer
        self._loader = loader
        self._update_calls = 0

    def init_weight_transfer_engine(self, init_info: Any) -> None:
        """Meet the trainer; allowed at any time, in a session too."""
        self.group = self._configured().init(init_info)

    def start_weight_update(self, is_checkpoint_format: Any) -> None:
        """Open the session."""
        self._configured()
        if self.session.active:
            raise WorkerError(self._profile.session.already_active)
        self.session.open(bool(is_checkpoint_format))
        self._loader.begin(self.session.checkpoint_format)

    def update_weights(self, update_info: Any) -> None:
        """Receive one bucket. A failure leaves the session as the release leaves it."""
        transfer = self._configured()
        if not self.session.active:
            raise WorkerError(self._profile.session.update_without_start)
        self._update_calls += 1
        try:
            transfer.receive(transfer.parse_update(self._own(update_info)), self._load)
        except WorkerError:
            self.session.failed = True
            if self._profile.failed_update_closes_session:
                self.session.close()
            raise
        self.session.updates += 1

    def finish_weight_update(self) -> None:
        """Close the session; what arrived goes live."""
        self._configured()
        if not self.session.active:
            raise WorkerError(self._profile.session.finish_without_start)
        self._loader.finish()
        self.session.close()

    def start_draft_weight_update(self) -> None:
        """Open a session for the speculative draft model, of which the mock has none."""
        self._configured()
        if self.session.active:
            raise WorkerError(self._profile.session.already_active)
        raise WorkerError("Draft model weight update requested, but no draft model is configured.")

    def shutdown_weight_transfer_engine(self) -> None:
        """Leave the trainer's group; refused inside a session, and no error without a group."""
        if self.session.active:
            raise WorkerError("Cannot release a trainer connection during a weight update")
        self.shutdown()
        self.group = None

    def compute_weight_checksums(self) -> dict[str, str]:
        """Digest every parameter of the model as vLLM names them."""
        if self.session.active or self._loader.on_meta:
            raise WorkerError("Cannot copy out of meta tensor; no data!")
        return {f"dp0:pp0:pcp0:tp{self.rank}:{name}": digest for name, digest in self._loader.checksums().items()}

    def reset_weights(self) -> None:
        """Fill every parameter with zeros."""
        self.store.zero()

    @property
    def whole(self) -> bool:
        """The model can compute: no layer waits for its weights."""
        return not self._loader.on_meta

    def abandon(self) -> None:
        """Wake up a method that waits for the trainer, from another thread."""
        if self._transfer is not None:
            self._transfer.abandon()

    def shutdown(self) -> None:
        """Leave the group."""
        if self._transfer is not None:
            self._transfer.shutdown()

    def _own(self, update_info: Any) -> Any:
        """Return this worker's entry of an array; anything else is for every worker."""
        if not (self._profile.update_per_worker and isinstance(update_info, list)):
            return update_info
        try:
            return update_info[self.rank]
        except IndexError as error:
            raise WorkerError(str(error)) from None

    def _load(self, tensors: list[Received]) -> None:
        self._loader.load(tensors, self._update_calls)

    def _configured(self) -> TransferEngine:
        if self._transfer is None:
            raise WorkerError(self._profile.session.not_configured)
        return self._transfer
