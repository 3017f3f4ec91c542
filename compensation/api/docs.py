"""How endpoints are described, and the OpenAPI document that comes of it."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from django.urls import URLPattern
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from compensation.api import schemas
from compensation.queries.discovery import IMPLEMENTATION, MAX_BODY_BYTES

View = TypeVar("View", bound=Callable[..., Any])

ERROR_REF: Final = {"$ref": "#/components/schemas/Error"}
REFUSALS: Final[Mapping[int, str]] = {
    400: "`validation_error`: `details.errors` names every fault by its JSON pointer",
    401: "`unauthenticated`, `key_expired`, `key_revoked`",
    403: "`forbidden`: in your tenant, and you do not hold it; the refusal is on record",
    404: "`not_found`: not there, or not there for you",
    409: "`version_conflict`, `run_terminal`, `approval_required`, `interrupt_already_resolved`; or the idempotency "
    "key: `idempotency_key_mismatch`, `idempotency_in_flight` (with `Retry-After`)",
    410: "`interrupt_expired`",
    411: "`validation_error`: the body came without a `Content-Length`",
    413: "`payload_too_large`",
    415: "`validation_error`: the body is not `application/json`",
    422: "`capability_required`: `details.requiredCapability` names it",
    429: "`rate_limited`, with `Retry-After`",
    500: "`internal_error`: `details.correlationId` is in the host's log",
}
ALWAYS: Final = (400, 401, 403, 404, 429, 500)
WITH_A_BODY: Final = (409, 411, 413, 415)
IDEMPOTENCY: Final = OpenApiParameter(
    name="Idempotency-Key",
    location=OpenApiParameter.HEADER,
    required=False,
    type=str,
    description="The first final answer under this key is replayed for 24 h, with `Idempotent-Replayed: true`",
)


class WireSchema(AutoSchema):
    """Operations named by method and path; who may call is said once, for the whole document."""

    def get_operation_id(self) -> str:
        name = re.sub("[^A-Za-z0-9]+", "_", self.path.removeprefix("/v1")).rstrip("_")
        return f"{self.method.lower()}{name}"

    def get_auth(self) -> list[dict[str, list[str]]]:
        return []


def described(
    *,
    summary: str,
    tag: str,
    ok: Mapping[int, schemas.Schema],
    body: schemas.Schema | None = None,
    query: Sequence[schemas.Schema] = (),
    errors: Iterable[int] = (),
) -> Callable[[View], View]:
    """Describes one method of an endpoint; refusals that every endpoint may give are added."""
    refused = sorted({*ALWAYS, *(WITH_A_BODY if body is not None else ()), *errors})
    responses: dict[int, Any] = {status: OpenApiResponse(schema, description=summary) for status, schema in ok.items()}
    responses |= {status: OpenApiResponse(ERROR_REF, description=REFUSALS[status]) for status in refused}
    parameters = [_parameter(each) for each in query]

    def decorate(view: View) -> View:
        mutates = view.__name__ == "post"
        decorated: View = extend_schema(
            summary=summary,
            tags=[tag],
            request={"application/json": body} if body is not None else None,
            responses=responses,
            parameters=[*parameters, *([IDEMPOTENCY] if mutates else [])],
        )(view)
        return decorated

    return decorate


def openapi(patterns: Sequence[URLPattern]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of these URL patterns."""
    generator: Any = SchemaGenerator
    generated = generator(patterns=list(patterns)).get_schema(request=None, public=True)
    paths = {_wire_path(path): _operations(operations) for path, operations in generated["paths"].items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Recourse",
            "version": IMPLEMENTATION["version"],
            "description": f"Bodies are I-JSON of at most {MAX_BODY_BYTES} bytes. Times are RFC 3339 in UTC with "
            "milliseconds. Ids are opaque. Every answer names its request in `X-Request-Id`.",
        },
        "security": [{"apiKey": []}],
        "paths": paths,
        "components": {
            "schemas": {"Error": schemas.ERROR},
            "securitySchemes": {"apiKey": {"type": "http", "scheme": "bearer"}},
        },
    }


def operations_of(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Operations by tag, for the page that people read."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            shown = {"method": method.upper(), "path": path, **operation, **_examples(operation)}
            groups.setdefault(operation["tags"][0], []).append(shown)
    return groups


def _examples(operation: Mapping[str, Any]) -> dict[str, str]:
    """The schemas of the body and of the first good answer, as text."""
    answers = [_json_schema(answer) for status, answer in operation["responses"].items() if status < "300"]
    body = _json_schema(operation.get("requestBody", {}))
    return {"body": json.dumps(body, indent=2) if body else "", "answer": json.dumps(answers[0], indent=2)}


def _json_schema(content: Mapping[str, Any]) -> Any:
    return content.get("content", {}).get("application/json", {}).get("schema")


def _operations(operations: Mapping[str, Any]) -> dict[str, Any]:
    return {method: _operation(operation) for method, operation in operations.items()}


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    """One operation with the wire's names, and open to everybody where its endpoint is public."""
    named = dict(operation)
    named["parameters"] = [_wire_parameter(each) for each in operation.get("parameters", [])]
    named.pop("security", None)
    return {**named, "security": []} if operation["tags"] == ["discovery"] else named


def _wire_parameter(parameter: Mapping[str, Any]) -> dict[str, Any]:
    renamed = _camel(parameter["name"]) if parameter["in"] == "path" else parameter["name"]
    return {**parameter, "name": renamed}


def _wire_path(path: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: "{" + _camel(match[1]) + "}", path)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _parameter(given: schemas.Schema) -> OpenApiParameter:
    return OpenApiParameter(
        name=given["name"], location=given["in"], required=False, type=given["schema"], description=given["description"]
    )
