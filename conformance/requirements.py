"""What the cases stand for: one key for each thing that a client must be able to rely on.

A test holds every key to at least one case, and every case to a key.
"""

from __future__ import annotations

REQUIREMENTS: dict[str, str] = {
    # the behaviour of 0.21.0 that is easiest to get wrong, one key each
    "invalid-json": "malformed or empty JSON on init, start and update is refused with 400",
    "body-not-an-object": "a body that is JSON but no object is a server error",
    "missing-info": "a body without its info, or with null, is refused with 400",
    "order-before-type": "an update_info of the wrong type, session idle: the order error comes first",
    "start-while-active": "a second start is refused and changes nothing",
    "update-while-idle": "an update without a session is refused",
    "finish-while-idle": "a finish without a session is refused",
    "unknown-info-key": "an unknown key in an info is refused by the engine",
    "list-lengths": "lists of different length are refused",
    "unknown-dtype": "a dtype that torch lacks is refused",
    "wrong-shape": "a tensor of the wrong shape is refused after its broadcast was consumed",
    "unknown-name-outside": "a name outside the model is refused after its broadcast was consumed",
    "unknown-name-inside": "an unknown name inside the model is ignored",
    "empty-lists": "an update of nothing succeeds and broadcasts nothing",
    "failed-update-start": "after a failed update the session stays active: start is refused",
    "failed-update-finish": "after a failed update finish closes the session",
    "pause-bad-mode": "a mode that pause does not know is refused with a validation text",
    "empty-answer": "reset_prefix_cache answers an empty body",
    # the rest of the contract
    "routes": "which routes and methods exist, and what the others answer",
    "information": "what a server tells about itself",
    "connection": "which answers end the connection",
    "content-type": "the content type of a request is ignored",
    "encoding": "which encodings of a JSON body are understood",
    "unknown-top-level-key": "unknown keys beside an info are ignored",
    "body-ignored": "the routes that never read their body",
    "init-fields": "which fields an init needs, and of which types",
    "init-again": "a second init replaces the group",
    "rendezvous": "an init blocks until every rank is there, and fails when the ranks do not fit",
    "start-format": "what is_checkpoint_format accepts and does",
    "update-fields": "which fields an update needs, and of which types",
    "not-initialised": "an update before any init is refused",
    "session-order": "what opens, keeps and closes a session",
    "recovery": "how a session is left after a failed update, and what a full sync then restores",
    "loader": "which tensors the loader takes",
    "pause": "what pause, resume and is_paused do",
    "engine-queue": "the engine does one call at a time, the process answers the rest at once",
    "sync": "a full sync arrives byte for byte",
    "bucket": "a bucket at one of its boundaries",
    "weight-version": "what sets and shows the label of the weights",
    "shutdown": "how a transfer is shut down",
    "abort": "how running requests are aborted",
    "draft": "what a server without a draft model answers to a draft update",
    "weight-checker": "what the checksums of the weights show",
    "update-array": "an update_info for each worker",
    "engine-death": "inference while the model has no data kills the engine, unless it is paused",
    "launch": "what a server lacks that was started without dev mode or a weight transfer config",
    "mismatch": "sender and receiver disagree about what travels",
}
