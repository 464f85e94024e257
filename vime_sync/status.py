"""What an engine is and in which state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vime_sync.engine import EngineClient
from vime_sync.errors import CallTimeout, UnsupportedRelease
from vime_sync.releases import release_of
from vime_sync.wording import counted


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """One look at an engine. A field is None where the engine did not say.

    busy     it lives and did not answer a route that waits for the engine: a call is under way
    session  the session as a mock shows it (`/mock/state`); a real server does not
    problem  why this client cannot push to it, or what it should be told about its release
    """

    engine: str
    healthy: bool
    version: str
    mock_version: str | None
    models: tuple[str, ...]
    world_size: int | None
    paused: bool | None
    busy: bool
    session: dict[str, Any] | None
    problem: str | None

    def as_json(self) -> dict[str, Any]:
        """The status as a JSON object; `schema` names its form."""
        return {
            "schema": "vime-sync/status/1",
            "engine": self.engine,
            "healthy": self.healthy,
            "version": self.version,
            "mock_version": self.mock_version,
            "models": list(self.models),
            "world_size": self.world_size,
            "paused": self.paused,
            "busy": self.busy,
            "session": self.session,
            "problem": self.problem,
        }

    def lines(self) -> list[str]:
        """The status for people."""

        def known(value: object) -> str:
            return "not known" if value is None else str(value)

        kind = "real server" if self.mock_version is None else f"mock {self.mock_version}"
        paused = "not known" if self.paused is None else "yes" if self.paused else "no"
        found = [
            f"engine      {self.engine}",
            f"release     vLLM {self.version} ({kind})",
            f"health      {'ok' if self.healthy else 'dead'}",
            f"model       {', '.join(self.models) or 'none'}",
            f"world size  {known(self.world_size)}",
            f"paused      {paused}",
            f"busy        {'yes: a call is under way' if self.busy else 'no'}",
            f"session     {self._session()}",
        ]
        return found + ([f"note        {self.problem}"] if self.problem else [])

    def _session(self) -> str:
        if self.session is None:
            return "not known (a real server does not show it)"
        active = "open" if self.session.get("active") else "none"
        failed = ", an update of it failed" if self.session.get("failed") else ""
        return f"{active}{failed}, {counted(self.session.get('updates', 0), 'update')}"


def engine_status(client: EngineClient) -> EngineStatus:
    """Asks an engine; the routes that wait for it count as busy when they time out. Raises CallError."""
    version = client.version()
    healthy = client.health()
    models = tuple(client.models())
    world_size: int | None = None
    paused: bool | None = None
    busy = False
    try:
        paused = client.is_paused()
        world_size = client.world_size()
    except CallTimeout:
        busy = True
    state = client.mock_state() if client.mock_version is not None else None
    session = state.get("session") if state is not None else None
    if world_size is None and state is not None and isinstance(state.get("world_size"), int):
        world_size = state["world_size"]
    try:
        problem = release_of(version).warning
    except UnsupportedRelease as unsupported:
        problem = unsupported.line()
    return EngineStatus(
        engine=client.engine,
        healthy=healthy,
        version=version,
        mock_version=client.mock_version,
        models=models,
        world_size=world_size,
        paused=paused,
        busy=busy,
        session=session if isinstance(session, dict) else None,
        problem=problem,
    )
