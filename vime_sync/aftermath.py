"""What a failed push left behind, in words, and what to do about it."""

from __future__ import annotations

from vime_sync.errors import ConnectError, DigestMismatch, OrderError, Refused, SyncError, TransportError
from vime_sync.session import SessionState

_CHECK = "see `vime-sync status`: push again once the engine answers and no call is under way, else restart it"

_SESSIONS = {
    SessionState.NOT_OPENED: (
        "the engine is left paused with the weights it had",
        "push again, or POST /resume to go on with those weights",
    ),
    SessionState.CLOSED_EARLY: (
        "the engine is left paused, its session is closed and its model may mix old and new weights",
        "push again before anything resumes it",
    ),
    SessionState.OUT_OF_STEP: (
        "the engine is left paused and the answers of its workers no longer belong to the calls",
        "restart the engine; nothing else brings them back in step",
    ),
    SessionState.FINISHED: ("the engine is left paused with finished weights", "push again before anything resumes it"),
}
_UNCLEAR = ("the engine may be paused, and what its session and its model hold is not known", _CHECK)


def explain(error: BaseException, *, paused: bool, init_sent: bool, session: SessionState | None, whole: bool) -> None:
    """Sets `state` and, where it has none, `next_step` on an error of ours; a note on any other.

    paused     `/pause` was sent
    init_sent  the engine was told to join
    session    state of the session, None before it was to be opened
    whole      the new weights are live and nothing spoke against them
    """
    state, step = _aftermath(error, paused=paused, init_sent=init_sent, session=session, whole=whole)
    if isinstance(error, SyncError):
        error.state = state
        error.next_step = error.next_step or step
    else:
        error.add_note(f"{state}; next: {step}" if step else state)


def _aftermath(
    error: BaseException, *, paused: bool, init_sent: bool, session: SessionState | None, whole: bool
) -> tuple[str, str | None]:
    if not paused:
        return "nothing was changed on the engine", None
    if whole:
        return "the new weights are live and whole, but the engine may still be paused", "POST /resume"
    unanswered = isinstance(error, TransportError) and not isinstance(error, ConnectError)
    if session is None:
        # Only a refusal proves that the engine has left the rendezvous.
        if init_sent and not isinstance(error, Refused):
            return "the engine is left paused with the weights it had, and may still wait for the trainer", _CHECK
        if unanswered:
            return "the engine may be paused; it has the weights it had", _CHECK
        return _SESSIONS[SessionState.NOT_OPENED]
    if session is SessionState.NOT_OPENED and isinstance(error, OrderError):
        return (
            "the engine is left paused, and a session that this push did not open is open on it",
            "if nobody else is pushing, POST /finish_weight_update, then push again",
        )
    if session is SessionState.FINISHED and isinstance(error, DigestMismatch):
        return "the engine is left paused with weights that are not those sent", "push again before anything resumes it"
    return _SESSIONS.get(session, _UNCLEAR)
