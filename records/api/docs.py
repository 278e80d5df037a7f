"""The API for readers: one page written from the OpenAPI document, no script needed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from records.api.schema import document

_METHODS = ("get", "post", "put", "patch", "delete")


def docs(request: HttpRequest) -> HttpResponse:
    """Every operation with its parameters, bodies and answers; needs no sign-in."""
    return render(request, "api/docs.html", {"groups": _groups(), "info": document()["info"]})


@lru_cache(maxsize=1)
def _groups() -> list[dict[str, Any]]:
    """Operations by resource, in the order of the document."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, item in document()["paths"].items():
        for method in _METHODS:
            if method in item:
                operation = _operation(path, method, item[method])
                groups.setdefault(item[method]["tags"][0], []).append(operation)
    return [{"name": name, "operations": found} for name, found in groups.items()]


def _operation(path: str, method: str, found: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": found["operationId"],
        "method": method.upper(),
        "path": path,
        "text": _plain(found),
        "public": found.get("security") == [{}] or not found.get("security"),
        "parameters": [_parameter(p) for p in found.get("parameters", [])],
        "bodies": list(found.get("requestBody", {}).get("content", {})),
        "fields": _fields(_body_schema(found.get("requestBody"))),
        "responses": [
            {"status": status, "text": _plain(answer)}
            for status, answer in found["responses"].items()
        ],
        "answer": _fields(_answer_schema(found["responses"])),
    }


def _plain(found: dict[str, Any]) -> str:
    """The description without the marks of Markdown."""
    return str(found.get("description", "")).replace("`", "")


def _parameter(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": found["name"],
        "place": found["in"],
        "type": _type(found.get("schema", {})),
        "required": found.get("required", False),
        "text": _plain(found),
    }


def _body_schema(body: dict[str, Any] | None) -> dict[str, Any] | None:
    return next(iter(body["content"].values())).get("schema") if body else None


def _answer_schema(responses: dict[str, Any]) -> dict[str, Any] | None:
    """That of the good answer; the problem document is told once, at the top of the page."""
    good = next((r for status, r in responses.items() if status.startswith("2")), {})
    return next(iter(good.get("content", {}).values()), {}).get("schema")


def _fields(schema: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Name, type and text of a body's fields; those of one row where it is a page of them."""
    resolved = _resolved(schema or {})
    rows = resolved.get("properties", {}).get("results", {}).get("items")
    if rows:
        resolved = _resolved(rows)
    required = resolved.get("required", [])
    return [
        {"name": name, "type": _type(found), "required": name in required,
         "text": _plain(_resolved(found))}
        for name, found in resolved.get("properties", {}).items()
    ]  # fmt: skip


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if name := schema.get("$ref", "").rpartition("/")[2]:
        found: dict[str, Any] = document()["components"]["schemas"][name]
        return found
    return schema


def _type(schema: dict[str, Any]) -> str:
    """One word for a schema: string, integer or null, one of a, b …"""
    parts = schema.get("allOf") or schema.get("oneOf") or schema.get("anyOf")
    if parts:
        return " or ".join(dict.fromkeys(_type(part) for part in parts))
    schema = _resolved(schema)
    if "enum" in schema:
        words = [_WORDS.get(value, str(value)) for value in schema["enum"]]
        return words[0] if len(words) == 1 else "one of " + ", ".join(words)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    word = schema.get("type", "any")
    word = schema["format"] if schema.get("format") in _TELLING else word
    return f"{word} or null" if schema.get("nullable") else word


_WORDS = {None: "null", "": "empty text"}
# Formats that say more than the type; int64 and double do not.
_TELLING = {"date-time", "uuid", "uri", "binary"}
