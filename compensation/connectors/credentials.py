"""Secrets of other systems: sealed at rest, never shown by accident, scrubbed from what comes back (CMP-304)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import NoReturn
from urllib.parse import quote, quote_plus

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

REDACTED = "[redacted]"
KEY_BYTES = 32
_FORMAT = b"\x01"
_KEY_ID_BYTES = 8
_NONCE_BYTES = 12
_HEADER_BYTES = len(_FORMAT) + _KEY_ID_BYTES


class CredentialUnreadableError(Exception):
    """A sealed credential cannot be opened: no key fits, it was altered, or it belongs to another owner."""


class Secret:
    """A credential's text. `reveal()` is the only way to it: never repr, str, format, equality of text or pickle."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not text:
            raise ValueError("a secret must not be empty")
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Secret({REDACTED})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is never pickled")


def parse_keys(text: str) -> tuple[bytes, ...]:
    """Keys from comma-separated base64 of 32 bytes each; the first seals, all of them unseal (rotation)."""
    return tuple(_parse_key(place, part.strip()) for place, part in enumerate(text.split(","), start=1))


def _parse_key(place: int, text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(f"credential key {place} is not base64") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"credential key {place} has {len(key)} bytes, expected {KEY_BYTES}")
    return key


def seal(secret: Secret, keys: Sequence[bytes], *, owner: str) -> bytes:
    """AES-256-GCM under the first key. `owner` (tenant and reference) is bound in, so a row cannot be moved."""
    nonce = os.urandom(_NONCE_BYTES)
    header = _FORMAT + _key_id(keys[0])
    return header + nonce + AESGCM(keys[0]).encrypt(nonce, secret.reveal().encode(), header + owner.encode())


def unseal(sealed: bytes, keys: Sequence[bytes], *, owner: str) -> Secret:
    """The secret sealed for `owner` under any of `keys`, else CredentialUnreadableError."""
    header, nonce = sealed[:_HEADER_BYTES], sealed[_HEADER_BYTES : _HEADER_BYTES + _NONCE_BYTES]
    key = next((key for key in keys if _FORMAT + _key_id(key) == header), None)
    if key is None:
        raise CredentialUnreadableError("the credential was sealed with a key that is not configured")
    try:
        text = AESGCM(key).decrypt(nonce, sealed[_HEADER_BYTES + _NONCE_BYTES :], header + owner.encode())
    except (InvalidTag, ValueError):
        raise CredentialUnreadableError("the sealed credential was altered or belongs to another owner") from None
    return Secret(text.decode())


def sealed_with_current_key(sealed: bytes, keys: Sequence[bytes]) -> bool:
    """False when `sealed` should be sealed again because the first key was rotated in since."""
    return sealed[:_HEADER_BYTES] == _FORMAT + _key_id(keys[0])


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"credential key id" + key).digest()[:_KEY_ID_BYTES]


def redact(text: str, secrets: Iterable[Secret]) -> str:
    """`text` without any of the secrets, plain, percent-encoded or base64."""
    return _without(text, _forms(secrets))


def redact_json(value: object, secrets: Iterable[Secret]) -> object:
    """A parsed JSON value with every string and member name redacted."""
    forms = _forms(secrets)
    return _walk(value, forms) if forms else value


def _walk(value: object, forms: Sequence[str]) -> object:
    if isinstance(value, str):
        return _without(value, forms)
    if isinstance(value, list):
        return [_walk(item, forms) for item in value]
    if isinstance(value, dict):
        return {_without(name, forms): _walk(item, forms) for name, item in value.items()}
    return value


def _without(text: str, forms: Sequence[str]) -> str:
    for form in forms:
        text = text.replace(form, REDACTED)
    return text


def _forms(secrets: Iterable[Secret]) -> list[str]:
    """Every spelling to look for, longest first, so that no shorter one leaves a rest of a longer one."""
    forms: set[str] = set()
    for secret in secrets:
        text = secret.reveal()
        encoded = {base64.b64encode(text.encode()).decode(), base64.urlsafe_b64encode(text.encode()).decode()}
        forms |= {text, quote(text, safe=""), quote_plus(text)} | encoded | {form.rstrip("=") for form in encoded}
    return sorted(forms, key=len, reverse=True)
