"""What can go wrong inside the imitated server, kept apart from bugs of the mock itself.

ImitatedError                 the real server fails here in the same way
├── WorkerError               raised in a worker; reaches the caller through the executor
├── BadValueError             a value that the API process could not convert (400)
├── EngineDeadError           the engine has died; nothing but `/health` (503) is answered well any more
├── EngineCallError           a utility call of the engine failed, with the wording of the release
└── ApiProcessError           raised in the API process before the engine was asked
SettingsError                 the mock was started with something it cannot do
"""

from __future__ import annotations


class ImitatedError(Exception):
    """A failure that a real server shows as well; answered, journaled, and never logged as a bug of the mock."""


class WorkerError(ImitatedError):
    """What a worker raises. Only its text survives the way to the client, as in vLLM."""


class EngineCallError(ImitatedError):
    """A call into the engine failed; the text is what the client sees under `message` (500)."""


class BadValueError(ImitatedError, ValueError):
    """A ValueError that vLLM's API process does not catch itself (400 from its catch-all handler)."""


class EngineDeadError(ImitatedError):
    """The engine process has ended."""

    def __init__(self) -> None:
        super().__init__("EngineCore encountered an issue. See stack trace (above) for the root cause.")


class ApiProcessError(ImitatedError):
    """An exception that vLLM's API process does not catch itself (500 from its catch-all handler)."""


class SettingsError(ValueError):
    """The mock cannot be started as asked. `option` names the command line option that is at fault."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"{option}: {reason}")
        self.option = option
        self.reason = reason
