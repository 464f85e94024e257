"""What a server answers that was started without dev mode, or without a weight transfer config."""

from conformance.case import Case, Launch
from conformance.cases.common import (
    FINISH,
    INIT_PATH,
    ROUTER,
    START,
    UPDATE_PATH,
    WORKER,
    bare_post,
    post,
    post_raw,
)
from conformance.check import check_case as test_case
from conformance.steps import Call

__all__ = ["CASES", "test_case"]

NO_DEV_MODE = Launch(dev_mode=False)
NO_TRANSFER = Launch(weight_transfer=False)
INFO = {"master_address": "127.0.0.1", "master_port": 9, "rank_offset": 1, "world_size": 2}

CASES = [
    Case(
        "LAUNCH-001",
        "without dev mode the routes of the transfer are 404",
        tuple(bare_post(path) for path in (INIT_PATH, "/start_weight_update", UPDATE_PATH, "/finish_weight_update")),
        "launch",
        ROUTER,
        launch=NO_DEV_MODE,
    ),
    Case(
        "LAUNCH-002",
        "without dev mode pausing and flushing are 404",
        (
            bare_post("/pause"),
            bare_post("/resume"),
            Call("GET", "/is_paused"),
            bare_post("/reset_prefix_cache"),
            Call("GET", "/get_world_size"),
        ),
        "launch",
        ROUTER,
        launch=NO_DEV_MODE,
    ),
    Case(
        "LAUNCH-003",
        "without dev mode the information routes are there",
        (Call("GET", "/health"), Call("GET", "/version"), Call("GET", "/v1/models")),
        "launch",
        ROUTER,
        launch=NO_DEV_MODE,
    ),
    Case(
        "LAUNCH-004",
        "without a weight transfer config an init is refused by the engine",
        (post(INIT_PATH, {"init_info": INFO}),),
        "launch",
        f"{WORKER}.init_weight_transfer_engine",
        launch=NO_TRANSFER,
    ),
    Case(
        "LAUNCH-005",
        "without a weight transfer config a start and what follows it",
        (START, post(UPDATE_PATH, {"update_info": {"names": [], "dtype_names": [], "shapes": []}}), FINISH),
        "launch",
        f"{WORKER}.start_weight_update",
        launch=NO_TRANSFER,
    ),
    Case(
        "LAUNCH-006",
        "without a weight transfer config an update and a finish without a start",
        (post(UPDATE_PATH, {"update_info": {}}), FINISH),
        "launch",
        f"{WORKER}.update_weights",
        launch=NO_TRANSFER,
    ),
    Case(
        "LAUNCH-007",
        "without a weight transfer config bodies are judged first",
        (post_raw(INIT_PATH, b"{bad"), post(UPDATE_PATH, {})),
        "launch",
        ROUTER,
        launch=NO_TRANSFER,
    ),
]
