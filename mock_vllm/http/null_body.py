"""A body of `null` counts as no body at all, as with the FastAPI that vLLM pins (0.136); later ones tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute


class NullIsNoBody(APIRoute):
    """A route whose handler sees an empty body where the client sent `null`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            if (await request.body()).strip() == b"null":
                request._body = b""
            return await handle(request)

        return handler
