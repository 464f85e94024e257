"""The commands behind `vime-sync`: arguments in, text or JSON out."""

from __future__ import annotations

import argparse
import contextlib
import json
from typing import Any

from vime_sync.buckets import Bucket, buckets_of
from vime_sync.checkpoint import Checkpoint, open_checkpoint
from vime_sync.engine import EngineClient
from vime_sync.errors import SettingError
from vime_sync.forms import choose_form
from vime_sync.outlet import Outlet
from vime_sync.progress import ProgressBar, Silent
from vime_sync.pushing import push
from vime_sync.releases import Release, assumed_release, check_assumed, release_of
from vime_sync.report import PushReport
from vime_sync.sizes import format_bytes
from vime_sync.status import engine_status
from vime_sync.timeouts import Timeouts
from vime_sync.wording import counted, some

ASSUMED_VERSION = "0.21.0"
_SHOWN_BUCKETS = 20


def run_push(arguments: argparse.Namespace, out: Outlet, err: Outlet) -> None:
    """`vime-sync push`. Raises SyncError."""
    timeouts = Timeouts.resolve(arguments.timeout)
    if arguments.engine is None and not arguments.dry_run:
        raise SettingError("--engine", "is needed, unless with --dry-run", next_step="give the engine's base URL")
    with open_checkpoint(arguments.checkpoint) as checkpoint:
        if checkpoint.unlisted and not arguments.quiet:
            names = some(checkpoint.unlisted)
            err.write(f"warning: {counted(len(checkpoint.unlisted), 'tensor')} not in the index, not sent: {names}\n")
        if arguments.dry_run:
            _show_plan(arguments, checkpoint, timeouts, out)
            return
        report = push(
            checkpoint,
            arguments.engine,
            packed=arguments.packed,
            bucket_bytes=arguments.bucket_bytes,
            packed_buffer_bytes=arguments.packed_buffer_bytes,
            timeouts=timeouts,
            progress=Silent() if arguments.quiet else ProgressBar(err),
            master_address=arguments.master_address,
            master_port=arguments.master_port,
            bind_address=arguments.bind_address,
            pause_mode=arguments.pause_mode,
            resume=arguments.resume,
            verify=arguments.verify,
            weight_version=arguments.weight_version,
            vllm_version=arguments.vllm_version,
        )
    if arguments.json:
        _write_json(out, report.as_json())
    elif not arguments.quiet:
        for line in report_lines(report):
            out.write(line + "\n")


def run_status(arguments: argparse.Namespace, out: Outlet, _err: Outlet) -> None:
    """`vime-sync status`. Raises SyncError."""
    with contextlib.closing(EngineClient(arguments.engine, Timeouts.resolve(arguments.timeout))) as client:
        status = engine_status(client)
    if arguments.json:
        _write_json(out, status.as_json())
    else:
        out.write("\n".join(status.lines()) + "\n")


def report_lines(report: PushReport) -> list[str]:
    """What a push did, for people."""
    found = [f"warning: {warning}" for warning in report.warnings]
    if report.form_reason:
        found.append(f"note: {report.form_reason}")
    form = "packed" if report.packed else "plain"
    found.append(
        f"pushed {counted(report.tensors, 'tensor')}, {format_bytes(report.nbytes)}, in "
        f"{counted(report.buckets, 'bucket')} ({form}) to {report.engine} (vLLM {report.version}, "
        f"{counted(report.world_size, 'worker')}): {report.total_seconds:.2f} s, "
        f"{format_bytes(report.bytes_per_second)}/s"
    )
    if report.weight_version is not None:
        found.append(f"the engine calls these weights {report.weight_version}")
    verified = "digests verified: every rank holds what was sent"
    found.append(verified if report.verified else report.reason or "sent, not verified")
    return found


def _show_plan(arguments: argparse.Namespace, checkpoint: Checkpoint, timeouts: Timeouts, out: Outlet) -> None:
    release, reached = _release_for_plan(arguments, timeouts)
    if arguments.weight_version is not None:
        release.check_weight_version(arguments.weight_version)
    form = choose_form(checkpoint, release, packed=arguments.packed)
    sizes = {"bucket_bytes": arguments.bucket_bytes, "packed_buffer_bytes": arguments.packed_buffer_bytes}
    buckets = buckets_of(form, release, **sizes)
    if arguments.json:
        described = {
            "schema": "vime-sync/plan/1",
            "checkpoint": str(checkpoint.path),
            "version": release.version,
            "engine": reached,
            "tensors": len(checkpoint),
            "bytes": checkpoint.nbytes,
            "packed": form.packed,
            "form_reason": form.reason,
            "buckets": [_described(bucket) for bucket in buckets],
        }
        _write_json(out, described)
        return
    where = f"{reached} answers" if reached else "no engine asked"
    out.write(
        f"{checkpoint.path}: {counted(len(checkpoint), 'tensor')}, {format_bytes(checkpoint.nbytes)}, "
        f"{counted(len(checkpoint.files), 'file')}, {counted(len(buckets), 'bucket')}, "
        f"for vLLM {release.version} ({where}); nothing was sent\n"
    )
    for note in (release.warning, form.reason):
        if note is not None:
            out.write(f"note: {note}\n")
    for bucket in buckets[:_SHOWN_BUCKETS]:
        out.write(
            f"bucket {bucket.index + 1}: {'packed' if bucket.packed else 'plain'}, "
            f"{counted(len(bucket.tensors), 'tensor')}, {format_bytes(bucket.nbytes)}, "
            f"{counted(len(bucket.broadcasts), 'broadcast')}, from {bucket.tensors[0].name}\n"
        )
    if len(buckets) > _SHOWN_BUCKETS:
        out.write(f"… and {counted(len(buckets) - _SHOWN_BUCKETS, 'more bucket')} (--json lists all)\n")


def _release_for_plan(arguments: argparse.Namespace, timeouts: Timeouts) -> tuple[Release, str | None]:
    assumed = assumed_release(arguments.vllm_version) if arguments.vllm_version is not None else None
    if arguments.engine is None:
        return assumed or release_of(ASSUMED_VERSION), None
    with contextlib.closing(EngineClient(arguments.engine, timeouts, release=assumed)) as client:
        stated = client.version()  # also with an assumed release: the engine must answer
        if assumed is not None:
            check_assumed(assumed, stated)
        return client.release, client.engine


def _described(bucket: Bucket) -> dict[str, Any]:
    return {
        "packed": bucket.packed,
        "bytes": bucket.nbytes,
        "broadcast_bytes": [sum(tensor.nbytes for tensor in tensors) for tensors in bucket.broadcasts],
        "names": [tensor.name for tensor in bucket.tensors],
    }


def _write_json(out: Outlet, found: dict[str, Any]) -> None:
    out.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
