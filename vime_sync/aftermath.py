"""What a failed push left behind, in words, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from vime_sync.errors import (
    ConnectError,
    DigestMismatch,
    EngineError,
    NeverJoined,
    OrderError,
    Refused,
    SyncError,
    WeightVersionMismatch,
)
from vime_sync.releases import Release
from vime_sync.session import SessionState

_ANSWERS = "see `vime-sync status`; once the engine answers and no call is under way,"
_CHECK = f"{_ANSWERS} push again, else restart it"
_ADDRESSES = (
    "check --master-address, where the engine looks for the trainer (in a container, the host's address), and "
    "--bind-address, where the trainer listens"
)
_RESTART = "restart the engine; nothing else brings them back in step"
_AGAIN = "push again before anything resumes it"

_SESSIONS = {
    SessionState.NOT_OPENED: (
        "the engine is left paused with the weights it had",
        "push again, or POST /resume to go on with those weights",
    ),
    SessionState.CLOSED_EARLY: (
        "the engine is left paused, its session is closed and its model may mix old and new weights",
        _AGAIN,
    ),
    SessionState.OUT_OF_STEP: (
        "the engine is left paused and the answers of its workers no longer belong to the calls",
        _RESTART,
    ),
    SessionState.FINISHED: ("the engine is left paused with finished weights", _AGAIN),
}


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a push has come.

    paused      `/pause` was sent
    confirmed   `/pause` was answered with success
    init_sent   the engine was told to join
    session     state of the session, None before it was to be opened
    whole       the new weights are live and nothing spoke against them
    release     the engine's, None before it was known
    world_size  its workers, 0 before it was known
    """

    paused: bool
    confirmed: bool
    init_sent: bool
    session: SessionState | None
    whole: bool
    release: Release | None
    world_size: int


def explain(error: BaseException, reached: Reached) -> None:
    """Sets `state` and, where it has none, `next_step` on an error of ours; a note on any other."""
    state, step = _aftermath(error, reached)
    if isinstance(error, SyncError):
        error.state = state
        error.next_step = error.next_step or step
    else:
        error.add_note(f"{state}; next: {step}" if step else state)


def _aftermath(error: BaseException, reached: Reached) -> tuple[str, str | None]:
    if not reached.paused or (not reached.confirmed and isinstance(error, ConnectError)):
        return "nothing was changed on the engine", None
    if not reached.confirmed:
        return _without_pause(error)
    if reached.whole:
        return "the new weights are live and whole, but the engine may still be paused", "POST /resume"
    session = reached.session
    if session is None:
        return _without_session(error, reached)
    if session is SessionState.NOT_OPENED and isinstance(error, OrderError):
        return (
            "the engine is left paused, and a session that this push did not open is open on it",
            "if nobody else is pushing, POST /finish_weight_update, then push again",
        )
    if session is SessionState.FINISHED and isinstance(error, DigestMismatch):
        return "the engine is left paused with weights that are not those sent", _AGAIN
    if session is SessionState.FINISHED and isinstance(error, WeightVersionMismatch):
        return (
            "the engine is left paused with the new weights under another name",
            "POST /update_weight_version with the right new_version, then POST /resume",
        )
    unclear = ("the engine may be paused, and what its session and its model hold is not known", recovery(reached))
    return _SESSIONS.get(session, unclear)


def _without_pause(error: BaseException) -> tuple[str, str]:
    """The pause was refused, or nobody knows what became of it. vLLM may have stopped part of its engines by then."""
    if isinstance(error, Refused):
        state = "the engine refused the pause, so it may not be paused, and it has the weights it had"
    else:
        state = "the engine may be paused; it has the weights it had"
    return state, f"{_CHECK}; POST /resume goes on with the old weights"


def _without_session(error: BaseException, reached: Reached) -> tuple[str, str]:
    """Nothing of the weights was touched yet."""
    if reached.init_sent and isinstance(error, Refused):
        # It has left the rendezvous, but with several workers the others' answers are still queued.
        poisoned = error.status >= 500 and reached.world_size > 1
        state, step = _SESSIONS[SessionState.OUT_OF_STEP if poisoned else SessionState.NOT_OPENED]
        return state, f"{_ADDRESSES}; then {step}" if isinstance(error, EngineError) else step
    if reached.init_sent:
        state = "the engine is left paused with the weights it had, and may still wait for the trainer"
        return state, f"{_ADDRESSES}; then {_CHECK}" if isinstance(error, NeverJoined) else _CHECK
    return _SESSIONS[SessionState.NOT_OPENED]


def recovery(reached: Reached) -> str:
    """What makes a session whole again whose state is not known, by release.

    From vLLM 0.23 on it may have been closed by a failed update, which leaves parameters without data and half-loaded
    layers that the next session would go on from: only a start and a finish without an update between end that. Before,
    it may be open.
    """
    closes = reached.release is not None and reached.release.failed_update_closes
    calls = "POST /start_weight_update and /finish_weight_update" if closes else "POST /finish_weight_update"
    return f"{_ANSWERS} {calls} (an error about their order does not matter), then push again; else restart it"
