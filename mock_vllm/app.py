"""The application: a release's routes over one engine."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from mock_vllm.build import MockEngine, build_engine
from mock_vllm.http.abort_routes import abort_routes
from mock_vllm.http.basic_routes import basic_routes
from mock_vllm.http.completion_routes import completion_routes
from mock_vllm.http.control_routes import control_routes
from mock_vllm.http.errors import install_error_handlers
from mock_vllm.http.inspection_routes import inspection_routes
from mock_vllm.http.journaling import JournalingApp, Receive, Scope, Send
from mock_vllm.http.sleep_routes import sleep_routes
from mock_vllm.http.typed_weight_routes import typed_weight_routes
from mock_vllm.http.weight_routes import weight_routes
from mock_vllm.profiles.profile import Bodies
from mock_vllm.settings import Settings


class MockApp:
    """An ASGI application with its engine; call `close` when done with it."""

    def __init__(self, engine: MockEngine) -> None:
        self.engine = engine
        self._asgi = JournalingApp(_routes(engine), engine.journal)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._asgi(scope, receive, send)

    def close(self) -> None:
        """Abandon what the engine is doing, end its threads, and let go of what it held.

        FastAPI caches the routes' functions for good, and with them everything they close over.
        """
        self.engine.core.shutdown()
        for worker in self.engine.core.executor.workers:
            worker.store.reset()
        self.engine.journal.clear()


def create_app(settings: Settings) -> MockApp:
    """Build the application of one mock server, ready for any ASGI server.

    Raises:
        SettingsError: the model directory cannot be read.
    """
    return MockApp(build_engine(settings))


def _routes(engine: MockEngine) -> FastAPI:
    app = FastAPI(title="vLLM API (mock)", version=engine.profile.version)
    # vLLM's default: any origin. Its answers say `vary: Origin`, except those of the outermost error handler.
    app.add_middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["*"], allow_headers=["*"])
    install_error_handlers(app, engine.profile)
    app.include_router(basic_routes(engine))
    app.include_router(completion_routes(engine))
    if engine.settings.dev_mode:
        typed = engine.profile.bodies is Bodies.TYPED
        app.include_router(typed_weight_routes(engine) if typed else weight_routes(engine))
        if "/abort_requests" in engine.profile.later_routes:
            app.include_router(abort_routes(engine))
        app.include_router(control_routes(engine))
        app.include_router(sleep_routes(engine))
    app.include_router(inspection_routes(engine))
    return app
