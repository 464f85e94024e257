"""How failures become answers.

Follows vLLM 0.21.0: `vllm.entrypoints.openai.server_utils` (the handlers) and
`vllm.entrypoints.utils.create_error_response`. The handler for any exception is Starlette's outermost: it answers and
raises again, upon which uvicorn closes the connection without having said so. That is part of the interface.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from mock_vllm.profiles.profile import Endpoint

_INSTALLED_AT = "/usr/local/lib/python3.12/dist-packages/vllm"
"""Where the official image holds vLLM: the path that its validation errors show."""


def envelope(message: str, kind: str, status: int, param: str | None = None) -> JSONResponse:
    """Return an error as vLLM words it: `{"error": {message, type, param, code}}`."""
    return JSONResponse(
        {"error": {"message": message, "type": kind, "param": param, "code": status}}, status_code=status
    )


def install_error_handlers(app: FastAPI, endpoints: dict[str, Endpoint]) -> None:
    """Register the release's handlers.

    Args:
        app: the application.
        endpoints: where the release defines the routes that validate their query.
    """

    async def on_http_exception(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return envelope(str(error.detail), HTTPStatus(error.status_code).phrase, error.status_code)

    async def on_validation_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        message = _validation_text(request, error, endpoints.get(request.url.path))
        return envelope(message, HTTPStatus.BAD_REQUEST.phrase, HTTPStatus.BAD_REQUEST)

    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_exception_handler(RequestValidationError, on_validation_error)
    app.add_exception_handler(Exception, on_any_exception)


async def on_any_exception(_: Request, error: Exception) -> JSONResponse:
    """Answer what nothing else caught; the status depends on the exception's class."""
    if isinstance(error, ValueError | TypeError | OverflowError):
        return envelope(str(error), "BadRequestError", HTTPStatus.BAD_REQUEST)
    return envelope(str(error), "InternalServerError", HTTPStatus.INTERNAL_SERVER_ERROR)


def _validation_text(request: Request, error: RequestValidationError, endpoint: Endpoint | None) -> str:
    """Return FastAPI's text with the release's place in it, then the list of errors once more."""
    errors: list[Any] = list(error.errors())
    plural = "" if len(errors) == 1 else "s"
    lines = "".join(f"  {entry}\n" for entry in errors)
    text = f"{len(errors)} validation error{plural}:\n{lines}"
    if endpoint is not None:
        text += f'\n  File "{_INSTALLED_AT}/{endpoint.file}", line {endpoint.line}, in {endpoint.function}'
        text += f"\n    {request.method} {request.url.path}"
    return f"{text.rstrip()} {errors}"
