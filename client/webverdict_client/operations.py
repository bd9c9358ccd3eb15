"""The operations of a server, from its OpenAPI document: by their ids, with the arguments that each takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

METHODS = ("get", "post", "put", "patch", "delete")


class UnknownArgumentError(TypeError):
    """The operation does not exist, or does not take these arguments."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: ``path`` has its parameters in braces; ``body`` are the fields of its JSON or form."""

    id: str
    method: str
    path: str
    summary: str
    scope: str
    in_path: frozenset[str]
    in_query: frozenset[str]
    body: frozenset[str]
    files: frozenset[str]
    is_form: bool

    def arrange(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """Return the path, the query and the body for these arguments. Raises UnknownArgumentError."""
        missing = self.in_path - arguments.keys()
        unknown = arguments.keys() - self.in_path - self.in_query - self.body
        if missing or unknown:
            wrong = [f"needs {', '.join(sorted(missing))}"] if missing else []
            wrong += [f"does not take {', '.join(sorted(unknown))}"] if unknown else []
            raise UnknownArgumentError(f"{self.id} {' and '.join(wrong)}. {self.describe_arguments()}")
        path = self.path
        for name in self.in_path:
            path = path.replace(f"{{{name}}}", quote(str(arguments[name]), safe=""))
        rest = {name: value for name, value in arguments.items() if name not in self.in_path}
        query = {name: value for name, value in rest.items() if name in self.in_query and name not in self.body}
        return path, query, {name: value for name, value in rest.items() if name not in query}

    def describe_arguments(self) -> str:
        parts = [("in the address", self.in_path), ("filters", self.in_query), ("fields", self.body)]
        said = "; ".join(f"{what}: {', '.join(sorted(names))}" for what, names in parts if names)
        return f"It takes {said}." if said else "It takes no arguments."


def read_operations(document: Mapping[str, Any]) -> dict[str, Operation]:
    """Return the operations of an OpenAPI 3 document by id."""
    return {operation.id: operation for operation in _read(document)}


def _read(document: Mapping[str, Any]) -> Iterator[Operation]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield _read_operation(document, path, method, item[method])


def _read_operation(document: Mapping[str, Any], path: str, method: str, given: Mapping[str, Any]) -> Operation:
    parameters = given.get("parameters", [])
    content = given.get("requestBody", {}).get("content", {})
    is_form = "application/json" not in content and "multipart/form-data" in content
    chosen = content.get("multipart/form-data" if is_form else "application/json", {})
    fields = _resolve(document, chosen.get("schema", {})).get("properties", {})
    return Operation(
        id=given["operationId"],
        method=method.upper(),
        path=path,
        summary=given.get("summary") or given.get("description", "").split("\n")[0],
        scope=given.get("x-token-scope", ""),
        in_path=frozenset(each["name"] for each in parameters if each["in"] == "path"),
        in_query=frozenset(each["name"] for each in parameters if each["in"] == "query"),
        body=frozenset(fields),
        files=frozenset(name for name, field in fields.items() if field.get("format") == "binary"),
        is_form=is_form,
    )


def _resolve(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if not reference:
        return schema
    found: Any = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return _resolve(document, found)
