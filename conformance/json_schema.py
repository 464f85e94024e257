"""The part of JSON Schema that ``truth/schema.json`` uses, so that loading a truth needs no further package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
_UNDERSTOOD = {
    *("$schema", "$defs", "title", "description", "$ref", "anyOf", "type", "const", "required", "properties"),
    *("additionalProperties", "items", "minItems", "minLength", "pattern", "minimum", "maximum"),
}


class SchemaKeywordError(ValueError):
    """The schema uses a keyword that this check does not know."""

    def __init__(self, keyword: str) -> None:
        super().__init__(f"keyword {keyword!r} of the schema is not understood")
        self.keyword = keyword


def violations(value: object, schema: Mapping[str, Any]) -> list[str]:
    """Where a JSON value breaks a schema, one line each: a path such as ``cases.HTTP-001.steps[0]``, and what is wrong.

    Raises SchemaKeywordError for a keyword outside this subset, KeyError for a ``$ref`` that leads nowhere.
    """
    return list(_check(value, schema, schema, ""))


def _check(value: object, schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> Iterator[str]:
    for keyword in schema:
        if keyword not in _UNDERSTOOD:
            raise SchemaKeywordError(keyword)
    if "$ref" in schema:
        yield from _check(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, at)
        return
    where = at or "the document"
    if "const" in schema and (type(value) is not type(schema["const"]) or value != schema["const"]):
        yield f"{where} is {value!r}, not {schema['const']!r}"
        return
    if "type" in schema and not _is_of(value, schema["type"]):
        yield f"{where} is {type(value).__name__}, not {schema['type']}"
        return
    if "anyOf" in schema and all(list(_check(value, option, root, at)) for option in schema["anyOf"]):
        yield f"{where} has none of the allowed forms"
    if isinstance(value, dict):
        yield from _check_object(value, schema, root, at)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{where} has {len(value)} items, {schema['minItems']} are needed"
        for index, item in enumerate(value):
            yield from _check(item, schema.get("items", {}), root, f"{at}[{index}]")
    elif isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield f"{where} is empty"
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{where} is {value!r}, which does not match {schema['pattern']}"
    elif isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{where} is {value}, outside {schema.get('minimum')} to {schema.get('maximum')}"


def _check_object(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> Iterator[str]:
    for key in schema.get("required", ()):
        if key not in value:
            yield f"{at or 'the document'} lacks {key!r}"
    named = schema.get("properties", {})
    other = schema.get("additionalProperties", {})
    for key, item in value.items():
        where = f"{at}.{key}" if at else key
        if key not in named and other is False:
            yield f"{where} is not allowed"
        else:
            yield from _check(item, named.get(key, other), root, where)


def _is_of(value: object, names: str | list[str]) -> bool:
    wanted = [names] if isinstance(names, str) else names
    if isinstance(value, bool):
        return "boolean" in wanted
    return any(isinstance(value, _TYPES[name]) for name in wanted)
