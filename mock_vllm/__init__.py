"""A server that behaves on the weight-transfer routes as a given vLLM release does.

from mock_vllm import MockServer, Settings

with MockServer(Settings(model="tiny", port=0)) as server:
    print(server.url)
"""

from mock_vllm._version import __version__
from mock_vllm.app import MockApp, create_app
from mock_vllm.build import MockEngine, build_engine
from mock_vllm.errors import SettingsError
from mock_vllm.server import MockServer
from mock_vllm.settings import Settings

__all__ = [
    "MockApp",
    "MockEngine",
    "MockServer",
    "Settings",
    "SettingsError",
    "__version__",
    "build_engine",
    "create_app",
]
