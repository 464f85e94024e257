"""One whole push: a checkpoint or a model into one engine."""

from __future__ import annotations

import contextlib

from vime_sync.addresses import check_master_address, local_address_towards, parse_engine_url
from vime_sync.buckets import DEFAULT_BUCKET_BYTES, DEFAULT_PACKED_BUFFER_BYTES, buckets_of
from vime_sync.engine import PAUSE_MODES, EngineClient, PauseMode
from vime_sync.errors import SettingError
from vime_sync.forms import choose_form
from vime_sync.progress import Progress, Silent
from vime_sync.push_round import PushRound, RoundOptions
from vime_sync.releases import assumed_release, check_assumed
from vime_sync.report import PushReport
from vime_sync.sources import Source, tensors_of
from vime_sync.timeouts import Timeouts
from vime_sync.transport import Transport


def push(
    source: Source,
    engine_url: str,
    *,
    packed: bool | None = None,
    bucket_bytes: int = DEFAULT_BUCKET_BYTES,
    packed_buffer_bytes: int = DEFAULT_PACKED_BUFFER_BYTES,
    timeouts: Timeouts | None = None,
    progress: Progress | None = None,
    master_address: str | None = None,
    master_port: int = 0,
    bind_address: str | None = None,
    pause_mode: PauseMode = "keep",
    resume: bool = True,
    verify: bool = True,
    weight_version: str | None = None,
    vllm_version: str | None = None,
    transport: Transport | None = None,
) -> PushReport:
    """Sends all tensors of `source` to the engine over the TCP plane and returns what was done.

    source               a path, a Checkpoint, a mapping of names to torch tensors, or TensorSources
    engine_url           base URL of the engine
    packed               send packed buffers, or one broadcast a tensor; None for packed ones, unless some tensor cannot
                         travel so and the release has one form a round (0.28 on): see `choose_form`
    bucket_bytes         bytes of one call of `/update_weights`, at most, unless a tensor is larger
    packed_buffer_bytes  vLLM's limit for one packed buffer; both sides cut by it
    timeouts             deadlines; from the environment when None
    progress             told how far it is
    master_address       where the engine finds the trainer; the local address that routes to the engine when None
    master_port          port to listen on; 0 takes a free one
    bind_address         where to listen; the master address when None, "" for all addresses
    pause_mode           what becomes of running requests; see EngineClient.pause
    resume               resume generation at the end, into a whole model
    verify               compare digests where the server shows them
    weight_version       what the engine is to call the weights, read back afterwards; from vLLM 0.27 on
    vllm_version         the release to assume of a development build, whose `/version` states none; refused where it
                         contradicts the release that the engine states
    transport            how calls travel; HTTP when None

    The order: version, world size, plan, pause, flush, init, start, buckets, finish, verify, resume; before the pause
    nothing is changed. After a failure the engine is left paused, and the error says in `state` what it was left in and
    in `next_step` what to do. Raises any SyncError.
    """
    if pause_mode not in PAUSE_MODES:
        known = ", ".join(PAUSE_MODES)
        raise SettingError("pause mode", f"{pause_mode!r} is not known", next_step=f"choose one of {known}")
    assumed = assumed_release(vllm_version) if vllm_version is not None else None
    address = parse_engine_url(engine_url)
    progress = progress or Silent()
    client = EngineClient(engine_url, timeouts, transport, release=assumed)
    if master_address is not None:
        check_master_address(master_address, address.host, listened_on=bind_address is None)
    with contextlib.closing(client), tensors_of(source) as tensors:
        round_ = PushRound(client, progress)
        try:
            version = round_.probe()
            if assumed is not None:
                check_assumed(assumed, version)
            release = client.release
            if weight_version is not None:
                release.check_weight_version(weight_version)
            form = choose_form(tensors, release, packed=packed)
            buckets = buckets_of(form, release, bucket_bytes=bucket_bytes, packed_buffer_bytes=packed_buffer_bytes)
            # Not before the engine has answered: a name that leads nowhere is the engine's fault, not the address's.
            master = master_address or local_address_towards(address.host, address.port)
            options = RoundOptions(
                pause_mode=pause_mode,
                resume=resume,
                verify=verify,
                master_address=master,
                master_port=master_port,
                bind_address=master if bind_address is None else bind_address,
                packing=release.init_packing(packed=form.packed, packed_buffer_bytes=packed_buffer_bytes),
                weight_version=weight_version,
            )
            verification = round_.run(buckets, options)
        except BaseException as error:
            round_.explain(error)
            raise
        finally:
            progress.end()
        return PushReport(
            engine=client.engine,
            version=version,
            world_size=round_.world_size,
            packed=form.packed,
            form_reason=form.reason,
            weight_version=weight_version,
            tensors=len(tensors),
            nbytes=sum(tensor.nbytes for tensor in tensors),
            buckets=len(buckets),
            verified=verification.verified,
            reason=verification.reason,
            seconds=round_.seconds,
            warnings=tuple(round_.warnings),
        )
