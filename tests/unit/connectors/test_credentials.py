"""Credentials: sealed at rest, never shown (CMP-304)."""

from __future__ import annotations

import base64
import copy
import pickle
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.connectors.credentials import (
    REDACTED,
    CredentialUnreadableError,
    Secret,
    parse_keys,
    redact,
    redact_json,
    seal,
    sealed_with_current_key,
    unseal,
)

OLD, NEW, OTHER = bytes(range(32)), bytes(range(1, 33)), bytes(range(2, 34))
OWNER = "acme/payments-inverse"


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_sealed_secret_comes_back_and_is_not_in_the_sealed_bytes(text: str) -> None:
    sealed = seal(Secret(text), [NEW], owner=OWNER)
    assert unseal(sealed, [NEW], owner=OWNER).reveal() == text
    assert len(text.encode()) < 8 or text.encode() not in sealed


def test_two_seals_of_one_secret_differ() -> None:
    assert seal(Secret("hunter2"), [NEW], owner=OWNER) != seal(Secret("hunter2"), [NEW], owner=OWNER)


def test_rotated_key_still_unseals_and_is_recognised_as_old() -> None:
    sealed = seal(Secret("hunter2"), [OLD], owner=OWNER)
    assert unseal(sealed, [NEW, OLD], owner=OWNER).reveal() == "hunter2"
    assert not sealed_with_current_key(sealed, [NEW, OLD])
    assert sealed_with_current_key(seal(Secret("hunter2"), [NEW, OLD], owner=OWNER), [NEW, OLD])


def test_sealed_row_cannot_be_moved_to_another_owner() -> None:
    sealed = seal(Secret("hunter2"), [NEW], owner=OWNER)
    with pytest.raises(CredentialUnreadableError):
        unseal(sealed, [NEW], owner="globex/payments-inverse")


def test_unknown_key_and_every_altered_or_missing_byte_are_refused() -> None:
    sealed = seal(Secret("hunter2"), [NEW], owner=OWNER)
    altered = [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in range(len(sealed))]
    shortened = [sealed[:length] for length in range(len(sealed))]
    for broken in altered + shortened:
        with pytest.raises(CredentialUnreadableError):
            unseal(broken, [NEW], owner=OWNER)
    with pytest.raises(CredentialUnreadableError):
        unseal(sealed, [OTHER], owner=OWNER)


def test_keys_are_parsed_in_order_and_refused_by_place() -> None:
    text = ",".join(base64.b64encode(key).decode() for key in (NEW, OLD))
    assert parse_keys(text) == (NEW, OLD)
    with pytest.raises(ValueError, match="key 2 is not base64"):
        parse_keys(text.partition(",")[0] + ",not base64!")
    with pytest.raises(ValueError, match="key 1 has 3 bytes, expected 32"):
        parse_keys(base64.b64encode(b"abc").decode())
    with pytest.raises(ValueError, match="key 1 has 0 bytes"):
        parse_keys("")


def test_secret_never_shows_itself() -> None:
    secret = Secret("hunter2-hunter2")
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", repr({"a": [secret]})]
    assert all("hunter2" not in text for text in shown)
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(secret)
    with pytest.raises(TypeError, match="never pickled"):
        copy.deepcopy(secret)
    with pytest.raises(AttributeError):
        secret.__dict__  # noqa: B018 - the access itself is what is tested


def test_empty_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        Secret("")


SECRET = "s3cr&t/+=ü value"
ECHOES = [SECRET, quote(SECRET, safe=""), base64.b64encode(SECRET.encode()).decode(), f"Bearer {SECRET}"]


@pytest.mark.parametrize("echo", ECHOES)
def test_redact_removes_every_form(echo: str) -> None:
    assert redact(f"a {echo} b", [Secret("unrelated"), Secret(SECRET)]).replace("Bearer ", "") == f"a {REDACTED} b"


def test_redact_json_walks_names_and_nested_values_and_keeps_the_rest() -> None:
    value = {"a": [1, True, None, {SECRET: f"x{SECRET}"}], "b": 1.5}
    expected = {"a": [1, True, None, {REDACTED: f"x{REDACTED}"}], "b": 1.5}
    assert redact_json(value, [Secret(SECRET)]) == expected
