"""From a node type and a frozen input to the exact request that will be sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from compensation.connectors.credentials import Secret
from compensation.domain.canonical import canonical, parse_ijson
from compensation.domain.node_type import CredentialHeader, NodeTypeSpec

JSON = "application/json"
_PLACEHOLDER = re.compile(r"\{(?:key|input\.([^{}]+))\}")
_FIELD_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


class RequestInvalidError(ValueError):
    """This input makes no request of this node type. `pointer` names the part; the text holds no value of either."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"{pointer}: {message}")
        self.pointer = pointer


class CredentialMissingError(LookupError):
    """A header names a credential that the tenant has not stored."""


@dataclass(frozen=True, slots=True)
class SecretValue:
    """A header value that is only put together when it is sent (CMP-304)."""

    prefix: str
    secret: Secret

    def reveal(self) -> str:
        return self.prefix + self.secret.reveal()


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """One request, ready to send. Its repr shows neither secrets nor the input."""

    method: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str | SecretValue], ...]
    body: bytes | None = field(default=None, repr=False)
    # False: repeating it might do its work twice, so it gets a fresh connection, for a pooled one may have gone
    # stale and leave the effect unknown for nothing.
    repeatable: bool = False
    follow_same_origin: bool = False

    def revealed_headers(self) -> list[tuple[str, str]]:
        return [(name, value if isinstance(value, str) else value.reveal()) for name, value in self.headers]

    def secrets(self) -> tuple[Secret, ...]:
        return tuple(value.secret for _, value in self.headers if isinstance(value, SecretValue))


def credential_refs(spec: NodeTypeSpec) -> frozenset[str]:
    """The references a call or readback of this node type may use: its own, and no other action's (CMP-304)."""
    parts = (part for part in (spec.request, spec.readback) if part is not None)
    named = {
        value.credential for part in parts for value in part.headers.values() if isinstance(value, CredentialHeader)
    }
    return frozenset(named | ({spec.credential_ref} if spec.credential_ref else set()))


def render(spec: NodeTypeSpec, *, key: str, frozen_input: bytes, credentials: Mapping[str, Secret]) -> OutboundRequest:
    """The request of a `kind: http` node type; `frozen_input` (RFC 8785 text) is its body byte for byte.

    Raises RequestInvalidError or CredentialMissingError.
    """
    if spec.request is None:
        raise RequestInvalidError("/request", "a manual node type is done by a person")
    headers = dict(_headers("/request", spec.request.headers, spec.credential_ref, credentials))
    headers[spec.idempotency.header] = _checked(f"/idempotency/header/{spec.idempotency.header}", key)
    body = None if spec.request.body is None else frozen_input
    if body is not None and not _has(headers, "Content-Type"):
        headers["Content-Type"] = JSON
    return OutboundRequest(
        method=spec.request.method,
        url=_url("/request/url", spec.request.url, key, frozen_input),
        headers=tuple(headers.items()),
        body=body,
        repeatable=spec.idempotency.honoured,
    )


def render_readback(
    spec: NodeTypeSpec, *, key: str, frozen_input: bytes, credentials: Mapping[str, Secret]
) -> OutboundRequest:
    """The readback of a node type that declares one, a safe request. Raises as `render` does."""
    if spec.readback is None:
        raise RequestInvalidError("/readback", "the node type declares none")
    headers = dict(_headers("/readback", spec.readback.headers, spec.credential_ref, credentials))
    return OutboundRequest(
        method=spec.readback.method,
        url=_url("/readback/url", spec.readback.url, key, frozen_input),
        headers=tuple(headers.items()),
        repeatable=True,
        follow_same_origin=True,
    )


def _url(pointer: str, template: str, key: str, frozen_input: bytes) -> str:
    """`template` with its placeholders percent-escaped; no value ever adds or removes a path segment."""
    ports = parse_ijson(frozen_input) if "{input." in template else {}
    url = _PLACEHOLDER.sub(lambda match: _escaped(pointer, match[1], key, ports), template)
    # Escaped slashes count too: some servers decode a path before they walk it.
    if any(segment in (".", "..") for segment in re.split(r"[/\\]", unquote(urlsplit(url).path))):
        raise RequestInvalidError(pointer, 'a path segment must not be "." or ".."')
    return url


def _escaped(pointer: str, port: str | None, key: str, ports: object) -> str:
    value = key if port is None else ports.get(port) if isinstance(ports, dict) else None
    if value is None or value == "" or isinstance(value, (dict, list)):
        raise RequestInvalidError(pointer, f"needs input {port!r} to be a non-empty string, a number or a boolean")
    return quote(value if isinstance(value, str) else canonical(value).decode(), safe="")


def _headers(
    pointer: str,
    declared: Mapping[str, str | CredentialHeader],
    credential_ref: str | None,
    credentials: Mapping[str, Secret],
) -> Iterator[tuple[str, str | SecretValue]]:
    for name, value in declared.items():
        yield name, value if isinstance(value, str) else _secret_value(f"{pointer}/headers/{name}", value, credentials)
    placed = _has(declared, "Authorization") or any(isinstance(value, CredentialHeader) for value in declared.values())
    # Where it is not stored the call goes out without it: a system that needs it answers 401, which holds the
    # node type (CMP-402) just as a wrong one would.
    if credential_ref is not None and credential_ref in credentials and not placed:
        bearer = CredentialHeader(credential_ref, "Bearer ")
        yield "Authorization", _secret_value("/credentialRef", bearer, credentials)


def _secret_value(pointer: str, header: CredentialHeader, credentials: Mapping[str, Secret]) -> SecretValue:
    secret = credentials.get(header.credential)
    if secret is None:
        raise CredentialMissingError(f"{pointer}: the credential {header.credential!r} is not stored")
    value = SecretValue(header.prefix, secret)
    _checked(pointer, value.reveal())
    return value


def _checked(pointer: str, value: str) -> str:
    if not _FIELD_VALUE.fullmatch(value):
        raise RequestInvalidError(pointer, "must be printable ASCII without line breaks to be a header's value")
    return value


def _has(headers: Mapping[str, object], name: str) -> bool:
    return any(each.lower() == name.lower() for each in headers)
