"""Which routes and methods exist, what a server tells about itself, and which answers end the connection."""

from conformance.case import Case
from conformance.cases.common import FINISH, FIRST_RELEASE, ROUTER, START, bare_post, post, post_raw
from conformance.check import check_case as test_case
from conformance.steps import Call

__all__ = ["CASES", "test_case"]

FOUR = ("/init_weight_transfer_engine", "/start_weight_update", "/update_weights", "/finish_weight_update")
INSTRUMENTATOR = "vllm.entrypoints.serve.instrumentator"
APP = "vllm.entrypoints.openai.api_server.build_app"


def each(method: str, paths: tuple[str, ...]) -> tuple[Call, ...]:
    """The same method on several paths."""
    return tuple(Call(method, path) for path in paths)


CASES = [
    Case(
        "HTTP-001",
        "health answers an empty 200",
        (Call("GET", "/health"),),
        "information",
        f"{INSTRUMENTATOR}.health.health",
    ),
    Case(
        "HTTP-002",
        "version answers the release",
        (Call("GET", "/version"),),
        "information",
        f"{INSTRUMENTATOR}.basic.show_version",
    ),
    Case(
        "HTTP-003",
        "the list of models names the served one",
        (Call("GET", "/v1/models"),),
        "information",
        "vllm.entrypoints.openai.models.api_router.show_available_models",
    ),
    Case(
        "HTTP-004",
        "the world size counts every worker, data-parallel ones too",
        (Call("GET", "/get_world_size"), Call("GET", "/get_world_size?include_dp=true")),
        "information",
        f"{ROUTER}.get_world_size",
        level="platform",
    ),
    Case(
        "HTTP-005",
        "the world size without data parallelism",
        (Call("GET", "/get_world_size?include_dp=false"), Call("GET", "/get_world_size?include_dp=0")),
        "information",
        f"{ROUTER}.get_world_size",
        level="platform",
    ),
    Case(
        "HTTP-006",
        "an include_dp that is no boolean is refused",
        (Call("GET", "/get_world_size?include_dp=x"),),
        "information",
        f"{ROUTER}.get_world_size",
    ),
    Case(
        "HTTP-007",
        "an unknown query parameter is ignored",
        (Call("GET", "/get_world_size?tp=2"),),
        "information",
        f"{ROUTER}.get_world_size",
        level="platform",
    ),
    Case(
        "HTTP-008",
        "an unknown route is 404, by any method",
        each("POST", ("/nope",)) + each("GET", ("/nope",)),
        "routes",
        APP,
    ),
    Case("HTTP-009", "GET on the four routes is 405", each("GET", FOUR), "routes", ROUTER),
    Case("HTTP-010", "PUT on the four routes is 405", each("PUT", FOUR), "routes", ROUTER),
    Case("HTTP-011", "HEAD on the four routes is 405", each("HEAD", FOUR), "routes", ROUTER),
    Case("HTTP-012", "OPTIONS on the four routes is 405", each("OPTIONS", FOUR), "routes", ROUTER),
    Case(
        "HTTP-013",
        "the wrong method on the other control routes is 405",
        each("GET", ("/pause", "/resume", "/reset_prefix_cache")) + each("POST", ("/is_paused", "/get_world_size")),
        "routes",
        ROUTER,
    ),
    Case(
        "HTTP-014",
        "the wrong method on the information routes is 405",
        each("POST", ("/health", "/version", "/v1/models")),
        "routes",
        INSTRUMENTATOR,
    ),
    Case(
        "HTTP-015",
        "a trailing slash is redirected to the route without it",
        tuple(bare_post(f"{path}/") for path in FOUR),
        "routes",
        APP,
    ),
    Case(
        "HTTP-016",
        "the routes of later releases are 404",
        (
            post("/abort_requests", {}),
            bare_post("/start_draft_weight_update"),
            Call("GET", "/weight_info"),
            post("/update_weight_version", {"new_version": "v1"}),
            bare_post("/shutdown_weight_transfer_engine"),
            post("/weight_checker", {"action": "checksum"}),
            bare_post("/release_kv_cache_memory"),
        ),
        "routes",
        ROUTER,
        applies_to=FIRST_RELEASE,
    ),
    Case(
        "HTTP-017",
        "a refusal by the HTTP layer keeps the connection",
        (post_raw("/start_weight_update", b"{bad}"), post("/update_weights", {"info": 1}), Call("GET", "/version")),
        "connection",
        f"{ROUTER}, uvicorn",
    ),
    Case(
        "HTTP-018",
        "an error of the engine ends the connection without saying so",
        (post("/finish_weight_update", {"connection": "ends"}), Call("GET", "/health")),
        "connection",
        f"{ROUTER}, uvicorn",
    ),
    Case(
        "HTTP-019",
        "successes keep the connection, through a whole session",
        (START, FINISH, Call("GET", "/is_paused"), Call("GET", "/health")),
        "connection",
        f"{ROUTER}, uvicorn",
    ),
    Case(
        "HTTP-020",
        "a body on a GET is ignored",
        (Call("GET", "/version", json={"version": "0.1"}), Call("GET", "/is_paused", raw=b"{bad")),
        "routes",
        APP,
    ),
]
