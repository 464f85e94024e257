"""The plane's two ends against each other and against raw sockets. Needs no vLLM."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import torch

from conformance.real.plugin.weight_plane.errors import (
    AbortedError,
    DeadlineError,
    GroupBrokenError,
    MeetingError,
    MismatchError,
    PeerGoneError,
    PlaneError,
    ProtocolError,
    SettingError,
)
from conformance.real.plugin.weight_plane.receiver import Receiver, join
from conformance.real.plugin.weight_plane.sender import gather
from conformance.real.plugin.weight_plane.settings import Settings, read_settings
from conformance.real.plugin.weight_plane.tensor_bytes import memory, sha256

pytestmark = pytest.mark.unit

QUICK = Settings(timeout=0.3)
PATIENT = Settings(timeout=10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def raw_trainer(settings: Settings) -> Iterator[tuple[Receiver, socket.socket]]:
    """A receiver that has joined a hand-written trainer."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        joining = pool.submit(join, "127.0.0.1", listener.getsockname()[1], 1, 2, settings)
        peer, _ = listener.accept()
        with peer:
            assert peer.recv(16, socket.MSG_WAITALL) == b"WTPLANE1\x00\x00\x00\x01\x00\x00\x00\x02"
            peer.sendall(b"\x00\x00\x00\x00\x00")
            receiver = joining.result()
            yield receiver, peer
            receiver.close()


def frame(sequence: int, data: bytes, kind: int = 1) -> bytes:
    return struct.pack(">BQQ", kind, sequence, len(data)) + data


def test_two_ranks_get_every_broadcast() -> None:
    port = free_port()
    payloads = [b"", b"a", bytes(range(256)) * 65536]
    with ThreadPoolExecutor(3) as pool:
        trainer = pool.submit(gather, "127.0.0.1", port, 3, PATIENT)
        ends = [pool.submit(join, "127.0.0.1", port, rank, 3, PATIENT) for rank in (1, 2)]
        sender, receivers = trainer.result(), [end.result() for end in ends]

        def take(receiver: Receiver) -> list[bytes]:
            buffers = [bytearray(len(payload)) for payload in payloads]
            for buffer in buffers:
                receiver.receive(memoryview(buffer))
            return [bytes(buffer) for buffer in buffers]

        taken = [pool.submit(take, receiver) for receiver in receivers]
        for payload in payloads:
            sender.send(memoryview(payload))
        assert [result.result() for result in taken] == [payloads, payloads]
    sender.close()
    for receiver in receivers:
        receiver.close()


@pytest.mark.parametrize(
    ("rank", "world_size", "reason"),
    [(1, 3, "world size 3 differs from the trainer's 2"), (2, 2, "rank 2 is outside 1..1")],
)
def test_a_join_that_does_not_fit_is_refused_with_both_values(rank: int, world_size: int, reason: str) -> None:
    port = free_port()
    with ThreadPoolExecutor(1) as pool:
        trainer = pool.submit(gather, "127.0.0.1", port, 2, QUICK)
        with pytest.raises(MeetingError, match=reason):
            join("127.0.0.1", port, rank, world_size, PATIENT)
        with pytest.raises(MeetingError, match=r"joined: ranks \[\], missing: ranks \[1\]"):
            trainer.result()


def test_nobody_listens() -> None:
    with pytest.raises(MeetingError, match=r"nobody listened within 0.3 s"):
        join("127.0.0.1", free_port(), 1, 2, QUICK)


@pytest.mark.parametrize("announced", [b"abcd", b"abcdefghijklmnop"])
def test_a_wrong_count_waits_for_the_deadline_and_delivers_nothing(announced: bytes) -> None:
    with raw_trainer(QUICK) as (receiver, peer):
        peer.sendall(frame(0, announced))
        buffer = bytearray(8)
        with pytest.raises(DeadlineError, match=f"8 bytes expected: the sender announced {len(announced)} bytes"):
            receiver.receive(memoryview(buffer))
        assert buffer == bytes(8)
        with pytest.raises(GroupBrokenError):
            receiver.receive(memoryview(buffer))
        kind, sequence, length = struct.unpack(">BQQ", peer.recv(17, socket.MSG_WAITALL))
        assert (kind, sequence) == (2, 0)
        assert b"announced" in peer.recv(length, socket.MSG_WAITALL)


def test_a_wrong_count_ends_when_the_peer_leaves_though_bytes_lie_unread() -> None:
    with raw_trainer(PATIENT) as (receiver, peer):
        peer.sendall(frame(0, b"abcd"))
        threading.Timer(0.05, peer.close).start()
        with pytest.raises(PeerGoneError, match="announced 4 bytes, then left"):
            receiver.receive(memoryview(bytearray(8)))


def test_a_wrong_count_fails_at_once_when_told_to() -> None:
    with raw_trainer(Settings(timeout=30, wait_on_mismatch=False)) as (receiver, peer):
        peer.sendall(frame(0, b"abcd"))
        with pytest.raises(MismatchError):
            receiver.receive(memoryview(bytearray(8)))


@pytest.mark.parametrize(
    ("sent", "error", "text"),
    [
        (frame(0, b"stop it", kind=2), AbortedError, "stop it"),
        (frame(3, b"12345678"), ProtocolError, "at broadcast 3"),
        (frame(0, b"12345678", kind=9), ProtocolError, "kind 9"),
    ],
)
def test_frames_that_end_the_group(sent: bytes, error: type[PlaneError], text: str) -> None:
    with raw_trainer(PATIENT) as (receiver, peer):
        peer.sendall(sent)
        with pytest.raises(error, match=text):
            receiver.receive(memoryview(bytearray(8)))


def test_half_a_frame_then_silence_or_departure() -> None:
    with raw_trainer(QUICK) as (receiver, peer):
        peer.sendall(frame(0, b"12345678")[:20])
        with pytest.raises(DeadlineError):
            receiver.receive(memoryview(bytearray(8)))
    with raw_trainer(PATIENT) as (receiver, peer):
        peer.sendall(frame(0, b"12345678")[:20])
        peer.close()
        with pytest.raises(PeerGoneError, match="after 3 of 8 bytes"):
            receiver.receive(memoryview(bytearray(8)))


@pytest.mark.parametrize("value", ["0", "-1", "nan", "soon", ""])
def test_an_unusable_timeout_is_named(value: str) -> None:
    with pytest.raises(SettingError, match="WEIGHT_PLANE_TIMEOUT"):
        read_settings({"WEIGHT_PLANE_TIMEOUT": value})


def test_a_tensors_memory() -> None:
    assert bytes(memory(torch.tensor(1.5, dtype=torch.bfloat16))) == b"\xc0\x3f"
    assert bytes(memory(torch.tensor([True, False]))) == b"\x01\x00"
    assert len(memory(torch.empty(0, 4))) == 0
    # As NCCL: the memory from the first element on, so a transposed tensor goes out untransposed.
    rows = torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8)
    assert bytes(memory(rows.T)) == b"\x01\x02\x03\x04"
    assert sha256(rows.T) == sha256(torch.tensor([[1, 3], [2, 4]], dtype=torch.uint8))
