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

from mock_vllm.errors import EngineDeadError
from mock_vllm.http.validation_summary import hide_paths, summarise
from mock_vllm.profiles.profile import Endpoint, Profile, Validation

_BAD_VALUES = (ValueError, TypeError, OverflowError)

_INSTALLED_AT = "/usr/local/lib/python3.12/dist-packages/vllm"
"""Where the official image holds vLLM: the path that its validation errors show."""


def envelope(message: str, kind: str, status: int, param: str | None = None) -> JSONResponse:
    """Return an error as vLLM words it: `{"error": {message, type, param, code}}`."""
    return JSONResponse(
        {"error": {"message": message, "type": kind, "param": param, "code": status}}, status_code=status
    )


def install_error_handlers(app: FastAPI, profile: Profile) -> None:
    """Register the release's handlers."""
    clean = hide_paths if profile.hides_paths else str

    async def on_http_exception(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return envelope(clean(str(error.detail)), HTTPStatus(error.status_code).phrase, error.status_code)

    async def on_validation_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        if profile.validation is Validation.SUMMARISED:
            message, param = summarise(error.errors())
        else:
            message, param = _validation_text(request, error, profile.endpoints.get(request.url.path)), None
        return envelope(clean(message), HTTPStatus.BAD_REQUEST.phrase, HTTPStatus.BAD_REQUEST, param)

    async def on_any_exception(_: Request, error: Exception) -> JSONResponse:
        if isinstance(error, _BAD_VALUES):
            return envelope(clean(str(error)), "BadRequestError", HTTPStatus.BAD_REQUEST)
        return envelope(clean(str(error)), "InternalServerError", HTTPStatus.INTERNAL_SERVER_ERROR)

    app.add_exception_handler(EngineDeadError, on_any_exception)
    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_exception_handler(RequestValidationError, on_validation_error)
    if not profile.value_errors_close:
        for kind in _BAD_VALUES:
            app.add_exception_handler(kind, on_any_exception)
    app.add_exception_handler(Exception, on_any_exception)


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
