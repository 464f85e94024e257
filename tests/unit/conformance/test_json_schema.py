"""The check of truth files against their schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.json_schema import SchemaKeywordError, violations
from conformance.truth import TruthError, load, path_of, recorded_releases, schema

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("release", recorded_releases())
def test_every_truth_fits_the_schema(release: str) -> None:
    document = json.loads(path_of(release).read_text())
    assert violations(document, schema()) == []
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(schema()).validate(document)


@pytest.mark.parametrize(
    ("value", "rule", "found"),
    [
        (1, {"type": "string"}, ["the document is int, not string"]),
        (True, {"type": "integer"}, ["the document is bool, not integer"]),
        (None, {"type": ["string", "null"]}, []),
        (1, {"const": True}, ["the document is 1, not True"]),
        (99, {"type": "integer", "minimum": 100}, ["the document is 99, outside 100 to None"]),
        ("", {"minLength": 1}, ["the document is empty"]),
        ("x", {"pattern": "^[0-9]$"}, ["the document is 'x', which does not match ^[0-9]$"]),
        ([], {"minItems": 1}, ["the document has 0 items, 1 are needed"]),
        ([1, "a"], {"items": {"type": "integer"}}, ["[1] is str, not integer"]),
        ({"a": 1}, {"additionalProperties": False}, ["a is not allowed"]),
        ({"a": 1}, {"additionalProperties": {"type": "string"}}, ["a is int, not string"]),
        ({}, {"required": ["a"]}, ["the document lacks 'a'"]),
        (1, {"anyOf": [{"type": "string"}, {"type": "null"}]}, ["the document has none of the allowed forms"]),
        (
            {"a": {"b": 1}},
            {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}},
            ["a is dict, not string"],
        ),
    ],
)
def test_what_breaks_a_rule_is_named(value: Any, rule: dict[str, Any], found: list[str]) -> None:
    assert violations(value, rule) == found


def test_an_unknown_keyword_is_no_silent_pass() -> None:
    with pytest.raises(SchemaKeywordError, match="'uniqueItems'"):
        violations([], {"uniqueItems": True})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d.update(made_by="transcribed"), "made_by is 'transcribed', not 'recorded'"),
        (lambda d: d["provenance"].pop("date"), "provenance lacks 'date'"),
        (lambda d: d["cases"]["HTTP-001"].update(steps=[]), "cases.HTTP-001.steps has 0 items"),
        (lambda d: d["cases"]["HTTP-001"]["steps"][0].pop("closed"), "cases.HTTP-001.steps[0] has none of the allowed"),
        (lambda d: d["cases"]["HTTP-001"]["steps"][0].update(status="200"), "cases.HTTP-001.steps[0] has none of"),
        (lambda d: d.update(release="0.99.0"), "release is '0.99.0', not '0.21.0'"),
        (lambda d: d.pop("not_testable"), "the document lacks 'not_testable'"),
    ],
)
def test_a_file_that_breaks_it_is_not_loaded(change: Any, text: str, tmp_path: Any) -> None:
    document = json.loads(path_of("0.21.0").read_text())
    change(document)
    path_of("0.21.0", tmp_path).write_text(json.dumps(document))
    with pytest.raises(TruthError) as caught:
        load("0.21.0", tmp_path)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
