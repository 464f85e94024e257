"""The label of the weights: ``/weight_info``, ``/update_weight_version``, and the version that a finish may carry."""

from conformance.case import Case
from conformance.cases.common import FINISH, FINISH_PATH, LATER_ROUTER, ONLY_0_32, START, UPDATE_PATH, post, post_raw
from conformance.check import check_case as test_case
from conformance.steps import Call, Step

__all__ = ["CASES", "test_case"]

SET_PATH = "/update_weight_version"
SHOWN = Call("GET", "/weight_info")
SET_SOURCE = f"{LATER_ROUTER}.update_weight_version"
FINISH_SOURCE = f"{LATER_ROUTER}.finish_weight_update"


def labelled(number: int, sentence: str, *steps: Step, source: str = FINISH_SOURCE) -> Case:
    """What is done, and which label is shown then."""
    return Case(f"VERSION-{number:03}", sentence, (*steps, SHOWN), "weight-version", source, applies_to=ONLY_0_32)


def set_to(value: object) -> Call:
    """A request that sets the label."""
    return post(SET_PATH, {"new_version": value})


CASES = [
    labelled(1, "the label of a server's first weights", source=f"{LATER_ROUTER}.weight_info"),
    labelled(2, "a label is set without any check", set_to("v8"), source=SET_SOURCE),
    labelled(3, "a label may be empty", set_to(""), source=SET_SOURCE),
    labelled(4, "a finish sets the label", START, post(FINISH_PATH, {"weight_version": "v7"})),
    labelled(5, "a finish without a version keeps the label", set_to("kept"), START, FINISH),
    labelled(
        6,
        "a finish with version null keeps the label",
        set_to("null"),
        START,
        post(FINISH_PATH, {"weight_version": None}),
    ),
    labelled(7, "a refused finish sets no label", post(FINISH_PATH, {"weight_version": "refused"})),
    labelled(
        8,
        "a finish with another content type closes the session and sets no label",
        START,
        Call("POST", FINISH_PATH, json={"weight_version": "text"}, content_type="text/plain"),
        FINISH,
    ),
    labelled(
        9,
        "a finish without a content type closes the session and sets no label",
        START,
        Call("POST", FINISH_PATH, json={"weight_version": "none"}, content_type=None),
        FINISH,
    ),
    labelled(
        10,
        "a failed update leaves nothing to label",
        START,
        post(UPDATE_PATH, {"update_info": {"bogus": "version"}}),
        post(FINISH_PATH, {"weight_version": "failed"}),
    ),
    labelled(
        11,
        "a finish with a version of the wrong type leaves the session open",
        START,
        post(FINISH_PATH, {"weight_version": []}),
        FINISH,
    ),
    labelled(12, "a label of the wrong type is refused", set_to(8), set_to(None), set_to(["v8"]), source=SET_SOURCE),
    labelled(13, "a label is required", post(SET_PATH, {}), post(SET_PATH, {"version": "v8"}), source=SET_SOURCE),
    labelled(
        14,
        "a label's body must be JSON",
        post_raw(SET_PATH, b"{bad"),
        post(SET_PATH, ["v8"]),
        Call("POST", SET_PATH),
        source=SET_SOURCE,
    ),
    labelled(
        15,
        "a label's body needs a JSON content type",
        Call("POST", SET_PATH, json={"new_version": "typed"}, content_type="text/plain"),
        Call("POST", SET_PATH, json={"new_version": "subtype"}, content_type="application/vnd.api+json"),
        source=SET_SOURCE,
    ),
    labelled(
        16, "a label set inside a session does not close it", START, set_to("inside"), START, FINISH, source=SET_SOURCE
    ),
    labelled(
        17,
        "the wrong method on the routes of the label",
        Call("GET", SET_PATH),
        Call("POST", "/weight_info"),
        source=LATER_ROUTER,
    ),
]
