"""What a call is called, in errors and in a transport."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Call:
    """Which call an error is about: route with its leading slash, engine as shown to people, phase, bucket from 0."""

    route: str
    engine: str
    phase: str
    bucket: int | None = None

    def __str__(self) -> str:
        bucket = f", bucket {self.bucket + 1}" if self.bucket is not None else ""
        return f"{self.engine}{self.route} ({self.phase}{bucket})"

    def on(self, engine: str) -> Call:
        """The same call, on the engine as it is shown to people."""
        return replace(self, engine=engine)
