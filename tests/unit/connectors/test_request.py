"""What exactly is sent: URL, headers and body of a node type for one frozen input."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.connectors.credentials import Secret
from compensation.connectors.request import (
    CredentialMissingError,
    OutboundRequest,
    RequestInvalidError,
    credential_refs,
    render,
    render_readback,
)
from compensation.domain.canonical import canonical
from compensation.domain.node_type import NodeTypeSpec, check_node_type

KEY = "ab" * 32
ORIGIN = "https://payments.example.com"


def node_type(*, request: dict[str, Any] | None = None, **members: Any) -> NodeTypeSpec:
    document = {
        "nodeTypeId": "payments.refund",
        "kind": "http",
        "request": {"method": "POST", "url": f"{ORIGIN}/refund", **(request or {})},
        **members,
    }
    assert check_node_type(document) == []
    return NodeTypeSpec.from_document(document)


def rendered(spec: NodeTypeSpec, *, frozen_input: bytes = b"{}", **credentials: str) -> OutboundRequest:
    secrets = {ref: Secret(text) for ref, text in credentials.items()}
    return render(spec, key=KEY, frozen_input=frozen_input, credentials=secrets)


def test_frozen_input_is_the_body_byte_for_byte_and_the_key_goes_along() -> None:
    """CMP-311: the key sent downstream is the effect's."""
    frozen = '{"amount":1e+21,"name":"é"}'.encode()
    request = rendered(node_type(idempotency={"header": "X-Request-Key", "honoured": True}), frozen_input=frozen)
    assert request.body == frozen
    assert request.revealed_headers() == [("X-Request-Key", KEY), ("Content-Type", "application/json")]
    assert request.repeatable


def test_without_body_no_content_type_is_claimed() -> None:
    request = rendered(node_type(request={"method": "DELETE"}))
    assert (request.method, request.body, request.repeatable) == ("DELETE", None, False)
    assert request.revealed_headers() == [("Idempotency-Key", KEY)]


def test_declared_content_type_stands() -> None:
    request = rendered(node_type(request={"headers": {"content-type": "application/vnd.x+json"}}))
    assert [value for name, value in request.headers if name.lower() == "content-type"] == ["application/vnd.x+json"]


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("c-1", "c-1"), ("a/b?c=d&e#f", "a%2Fb%3Fc%3Dd%26e%23f"), ("é ü", "%C3%A9%20%C3%BC"), ("%2e", "%252e"),
        ("\r\nX-Evil: 1", "%0D%0AX-Evil%3A%201"), ("@evil.example", "%40evil.example"), (7, "7"), (10.0, "10"),
        (1e21, "1e%2B21"), (True, "true"), (False, "false"), (0, "0"), ("{key}", "%7Bkey%7D"), ("...", "..."),
    ],
)  # fmt: skip
def test_input_value_is_escaped_into_one_segment(value: object, escaped: str) -> None:
    spec = node_type(request={"url": ORIGIN + "/charges/{input.charge.id}/refund?key={key}"})
    request = rendered(spec, frozen_input=canonical({"charge.id": value}))
    assert request.url == f"{ORIGIN}/charges/{escaped}/refund?key={KEY}"


I_JSON_TEXT = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


@given(st.text(I_JSON_TEXT, min_size=1, max_size=20))
def test_no_value_moves_the_request_elsewhere(value: str) -> None:
    spec = node_type(request={"url": ORIGIN + "/charges/{input.id}/refund"})
    try:
        url = urlsplit(rendered(spec, frozen_input=canonical({"id": value})).url)
    except RequestInvalidError:
        return
    assert (url.scheme, url.netloc, url.query, url.fragment) == ("https", "payments.example.com", "", "")
    assert [unquote(segment) for segment in url.path.split("/")] == ["", "charges", value, "refund"]


@pytest.mark.parametrize("value", [".", "..", "../admin", "a/../../b", "..\\admin", "", None, {}, {"a": 1}, [1]])
def test_value_that_would_name_another_resource_is_refused(value: object) -> None:
    spec = node_type(request={"url": ORIGIN + "/charges/{input.id}"})
    with pytest.raises(RequestInvalidError, match="/request/url"):
        rendered(spec, frozen_input=canonical({"id": value}))


@pytest.mark.parametrize("frozen", [b"{}", b"[1]", b'"id"'])
def test_missing_port_is_refused_by_name(frozen: bytes) -> None:
    with pytest.raises(RequestInvalidError, match="'id'"):
        rendered(node_type(request={"url": ORIGIN + "/{input.id}"}), frozen_input=frozen)


def test_dots_put_together_from_two_values_are_refused() -> None:
    spec = node_type(request={"url": ORIGIN + "/a/{input.x}{input.y}"})
    with pytest.raises(RequestInvalidError, match="path segment"):
        rendered(spec, frozen_input=b'{"x":".","y":"."}')


CREDENTIAL_HEADER = {"headers": {"X-Api-Key": {"credential": "payments", "prefix": "Key "}}}


def test_credential_stands_only_in_the_header_that_names_it() -> None:
    request = rendered(node_type(request=CREDENTIAL_HEADER), payments="hunter2-hunter2", other="never-sent")
    assert ("X-Api-Key", "Key hunter2-hunter2") in request.revealed_headers()
    assert "hunter2" not in repr(request)
    assert [secret.reveal() for secret in request.secrets()] == ["hunter2-hunter2"]


def test_credential_ref_alone_is_a_bearer_token_when_stored() -> None:
    spec = node_type(credentialRef="payments")
    assert ("Authorization", "Bearer hunter2-hunter2") in rendered(spec, payments="hunter2-hunter2").revealed_headers()
    assert "Authorization" not in dict(rendered(spec).headers)
    placed = node_type(request=CREDENTIAL_HEADER, credentialRef="payments")
    assert "Authorization" not in dict(rendered(placed, payments="hunter2-hunter2").headers)


def test_credential_that_a_header_names_must_be_stored() -> None:
    with pytest.raises(CredentialMissingError, match="/request/headers/X-Api-Key: the credential 'payments'"):
        rendered(node_type(request=CREDENTIAL_HEADER), other="never-sent")


@pytest.mark.parametrize("text", ["a\r\nX-Evil: 1", "a\nb", "a\x00b", "é", "trailing blank ", "\x7f"])
def test_credential_that_is_no_header_value_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(RequestInvalidError) as refused:
        rendered(node_type(request=CREDENTIAL_HEADER), payments=text)
    assert text not in str(refused.value)


def test_key_that_is_no_header_value_is_refused() -> None:
    with pytest.raises(RequestInvalidError, match="/idempotency/header"):
        render(node_type(), key="a\r\nb", frozen_input=b"{}", credentials={})


READBACK = {
    "method": "GET",
    "url": ORIGIN + "/effects/{key}?charge={input.id}",
    "headers": {"X-Reader": {"credential": "reader"}},
    "applied": {"status": [200], "path": "$.state", "equals": "applied"},
    "notApplied": {"status": [404]},
}


def test_readback_is_a_safe_request_of_its_own() -> None:
    spec = node_type(readback=READBACK)
    credentials = {"reader": Secret("hunter2-hunter2")}
    request = render_readback(spec, key=KEY, frozen_input=b'{"id":"c/1"}', credentials=credentials)
    assert (request.method, request.url, request.body) == ("GET", f"{ORIGIN}/effects/{KEY}?charge=c%2F1", None)
    assert request.revealed_headers() == [("X-Reader", "hunter2-hunter2")]
    assert (request.repeatable, request.follow_same_origin) == (True, True)


def test_node_type_without_request_or_readback_makes_none() -> None:
    manual = NodeTypeSpec.from_document({"nodeTypeId": "by.hand", "kind": "manual"})
    with pytest.raises(RequestInvalidError, match="/request"):
        rendered(manual)
    with pytest.raises(RequestInvalidError, match="/readback"):
        render_readback(node_type(), key=KEY, frozen_input=b"{}", credentials={})


def test_credentials_a_node_type_may_use_are_its_own() -> None:
    """CMP-304: nothing but what the node type itself names."""
    spec = node_type(request=CREDENTIAL_HEADER, readback=READBACK, credentialRef="payments-inverse")
    assert credential_refs(spec) == {"payments", "reader", "payments-inverse"}
    assert credential_refs(node_type()) == frozenset()
