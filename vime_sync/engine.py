"""One engine: its routes as typed calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from vime_sync import answers
from vime_sync.calls import Call
from vime_sync.errors import Refused, UnsupportedRelease
from vime_sync.releases import Release, release_of
from vime_sync.timeouts import Timeouts
from vime_sync.transport import ANSWER_LIMIT, HttpTransport, Response, Transport

PauseMode = Literal["keep", "abort", "wait"]
PAUSE_MODES: tuple[str, ...] = get_args(PauseMode)
MOCK_HEADER = "x-mock-vllm"
WEIGHTS_SCHEMA = "mock-vllm/weights/1"
STATE_SCHEMA = "mock-vllm/state/1"
# One entry of /mock/weights takes about 250 bytes: this is a million tensors, over all ranks.
_WEIGHTS_LIMIT = 256 << 20


class EngineClient:
    """The routes of one vLLM server that a weight sync needs.

    url        base URL, such as `http://127.0.0.1:8000`
    timeouts   deadlines of every call; resolved from the environment when None
    transport  how calls travel; HTTP when None
    release    the release to assume; asked of the server when None

    Every method raises CallError (TransportError without a readable answer, Refused with an error as answer). Nothing
    is ever repeated. The routes are those of vLLM 0.21.0, `vllm.entrypoints.serve.rlhf.api_router`, unless a method
    says otherwise.
    """

    def __init__(
        self,
        url: str,
        timeouts: Timeouts | None = None,
        transport: Transport | None = None,
        *,
        release: Release | None = None,
    ) -> None:
        self.timeouts = timeouts or Timeouts.resolve()
        self._transport = transport or HttpTransport(url, self.timeouts)
        self._release = release
        self.stated_version: str | None = None
        self.mock_version: str | None = None

    @property
    def engine(self) -> str:
        """The engine as it may be shown: its base URL without credentials."""
        return self._transport.engine

    @property
    def release(self) -> Release:
        """The release to go by; asks `/version` unless it is known. Raises CallError, UnsupportedRelease."""
        if self._release is None:
            self._release = release_of(self.stated_version or self.version())
        return self._release

    def health(self) -> bool:
        """Whether `/health` says the engine lives: 200, and false for 503. Answers while the engine is busy."""
        call = Call("/health", self.engine, "probe")
        try:
            answers.expect_empty(call, self._get(call, quick=True))
        except Refused as refused:
            if refused.status == 503:
                return False
            raise
        return True

    def version(self) -> str:
        """What `/version` states; kept in `stated_version`, and in `mock_version` the mock's own when it is one."""
        call = Call("/version", self.engine, "version")
        response = self._get(call, quick=True)
        self.mock_version = response.headers.get(MOCK_HEADER)
        self.stated_version = answers.expect_text(call, response, "version")
        return self.stated_version

    def models(self) -> list[str]:
        """The ids of `/v1/models`."""
        call = Call("/v1/models", self.engine, "probe")
        return answers.expect_models(call, self._get(call, quick=True))

    def world_size(self) -> int:
        """How many workers the engine has, data parallelism included. Waits while the engine is busy."""
        call = Call("/get_world_size", self.engine, "world size")
        return answers.expect_count(call, self._get(call), "world_size")

    def is_paused(self) -> bool:
        """Whether generation is paused. Waits while the engine is busy."""
        call = Call("/is_paused", self.engine, "probe")
        return answers.expect_flag(call, self._get(call), "is_paused")

    def pause(self, mode: PauseMode = "keep", *, clear_cache: bool = True) -> None:
        """Pauses generation: running requests are kept, aborted or waited for; caches are cleared when asked."""
        call = Call("/pause", self.engine, "pause")
        query = {"mode": mode, "clear_cache": "true" if clear_cache else "false"}
        answers.expect_status(call, self._post(call, {}, query=query))

    def resume(self) -> None:
        """Resumes generation. Only a whole model may be resumed into: it kills the engine otherwise."""
        call = Call("/resume", self.engine, "resume")
        answers.expect_status(call, self._post(call, {}))

    def reset_prefix_cache(self) -> bool | None:
        """Empties the prefix cache. True or false as the server says from 0.26 on; None before, when it does not say.

        vLLM 0.21.0 `vllm.entrypoints.serve.cache.api_router.reset_prefix_cache`.
        """
        call = Call("/reset_prefix_cache", self.engine, "flush")
        as_json = self.release.reset_answers_json
        response = self._post(call, {})
        if as_json:
            return answers.expect_flag(call, response, "success")
        answers.expect_empty(call, response)
        return None

    def init_weight_transfer_engine(
        self, init_info: Mapping[str, Any], *, on_sent: Callable[[], None] | None = None
    ) -> None:
        """Makes the workers join the trainer's group. Blocks until every rank of the group is there.

        `on_sent` is called when the request's last byte is out.
        """
        call = Call("/init_weight_transfer_engine", self.engine, "init")
        answers.expect_message(call, self._post(call, {"init_info": init_info}, on_sent=on_sent))

    def start_weight_update(self, *, is_checkpoint_format: bool | None = None, total: float | None = None) -> None:
        """Opens the session. None sends `{}`: checkpoint format on every release. `total` seconds as for finish.

        Raises UnsupportedRelease for False on a release that would load checkpoint format all the same (0.25 on).
        """
        call = Call("/start_weight_update", self.engine, "start")
        if is_checkpoint_format is False and not self.release.start_reads_format:
            raise UnsupportedRelease(
                self.release.version,
                f"vLLM {self.release.version} ignores is_checkpoint_format=False and loads checkpoint format",
                next_step="send weights in checkpoint format, under the names of the checkpoint",
            )
        body = {} if is_checkpoint_format is None else {"is_checkpoint_format": is_checkpoint_format}
        answers.expect_message(call, self._post(call, body, total=total))

    def update_weights(
        self,
        update_info: Mapping[str, Any],
        *,
        bucket: int | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> None:
        """Announces one bucket. Blocks until the workers have received and loaded it.

        `bucket` (from 0) is for errors; `on_sent` is called when the request's last byte is out.
        """
        call = Call("/update_weights", self.engine, "update", bucket)
        answers.expect_message(call, self._post(call, {"update_info": update_info}, on_sent=on_sent))

    def finish_weight_update(self, *, weight_version: str | None = None, total: float | None = None) -> None:
        """Closes the session: the weights go live. `total` seconds replace the usual deadline.

        `weight_version` names them from then on, from vLLM 0.27 on (`vllm.entrypoints.serve.dev.rlhf.api_router`); see
        `weight_version`. Raises UnsupportedRelease for an older one, which would ignore it.
        """
        call = Call("/finish_weight_update", self.engine, "finish")
        if weight_version is not None:
            self.release.check_weight_version(weight_version)
        body = {} if weight_version is None else {"weight_version": weight_version}
        answers.expect_message(call, self._post(call, body, total=total))

    def weight_version(self) -> str:
        """What the engine says that its weights are called (`/weight_info`, vLLM 0.27.0 on)."""
        call = Call("/weight_info", self.engine, "verify")
        return answers.expect_text(call, self._get(call), "weight_version")

    def mock_weights(self) -> dict[str, Any] | None:
        """The object of a mock's `/mock/weights` (docs/mock-routes.md), or None on a server that is no mock."""
        return self._mock("/mock/weights", WEIGHTS_SCHEMA, _WEIGHTS_LIMIT)

    def mock_state(self) -> dict[str, Any] | None:
        """The object of a mock's `/mock/state` (docs/mock-routes.md), or None on a server that is no mock."""
        return self._mock("/mock/state", STATE_SCHEMA, ANSWER_LIMIT)

    def abort(self) -> None:
        """Ends every call under way, from any thread. What the engine makes of them is not known then."""
        self._transport.abort()

    def close(self) -> None:
        """Lets the connections go."""
        self._transport.close()

    def _mock(self, route: str, schema: str, limit: int) -> dict[str, Any] | None:
        call = Call(route, self.engine, "verify")
        response = self._transport.request(call, "GET", total=self.timeouts.total, limit=limit)
        if MOCK_HEADER not in response.headers:
            return None
        return answers.expect_schema(call, response, schema)

    def _get(self, call: Call, *, quick: bool = False) -> Response:
        return self._transport.request(call, "GET", total=self.timeouts.quick if quick else self.timeouts.total)

    def _post(
        self,
        call: Call,
        body: Mapping[str, Any],
        *,
        query: Mapping[str, str] | None = None,
        total: float | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> Response:
        # A body and its content type on every POST: up to 0.24 start refuses an empty one, and from 0.27 on a body
        # without the type counts as absent.
        content = json.dumps(body, separators=(",", ":")).encode()
        return self._transport.request(
            call, "POST", query=query, body=content, total=total or self.timeouts.total, on_sent=on_sent
        )
