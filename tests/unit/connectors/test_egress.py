"""The egress guard: which addresses, URLs and allow-list entries are refused."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compensation.connectors.egress import (
    AllowListError,
    EgressPolicy,
    EgressRefusedError,
    SocketGate,
    connecting_to,
    effective_address,
    parse_allow,
    parse_destination,
)

NOTHING_OPENED = EgressPolicy()
REFUSED = [
    "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
    "100.127.255.255", "169.254.169.254", "169.254.0.1", "168.63.129.16", "100.100.100.200", "192.0.0.192",
    "0.0.0.0",  # noqa: S104 - an address to refuse, not to bind
    "0.1.2.3", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "ff02::1", "2001:db8::1",
    "2001::1", "64:ff9b:1::1", "100::1", "3fff::1", "5f00::1", "::7f00:1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:100.64.0.1", "::ffff:0.0.0.0",
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8"]
METADATA = ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"]
EVERY_RANGE = parse_allow(
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "100.64.0.0/10", "::1", "fc00::/7"]
)


@pytest.mark.parametrize("text", REFUSED)
def test_address_that_is_not_public_is_refused(text: str) -> None:
    assert not NOTHING_OPENED.permits(ipaddress.ip_address(text), 443)


@pytest.mark.parametrize("text", PUBLIC)
def test_public_address_is_permitted(text: str) -> None:
    assert NOTHING_OPENED.permits(ipaddress.ip_address(text), 443)


@pytest.mark.parametrize("text", METADATA)
def test_metadata_service_is_refused_even_when_its_range_or_name_is_opened(text: str) -> None:
    opened = parse_allow(["fc00::/7", "100.64.0.0/10", "metadata.internal"])
    assert not opened.permits(ipaddress.ip_address(text), 80, host="metadata.internal")


@given(st.ip_addresses(v=4))
def test_mapped_ipv4_address_is_judged_like_the_address_inside(address: ipaddress.IPv4Address) -> None:
    inside = int(address)
    for outside in (0xFFFF << 32 | inside, 0x64FF9B << 96 | inside, 0x2002 << 112 | inside << 80 | 1):
        wrapped = ipaddress.IPv6Address(outside)
        assert EVERY_RANGE.permits(wrapped, 80) == EVERY_RANGE.permits(address, 80)
        assert NOTHING_OPENED.permits(wrapped, 80) == NOTHING_OPENED.permits(address, 80)


@given(st.ip_addresses())
def test_nothing_but_an_openable_range_is_ever_opened(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    """Beyond public addresses, every entry there can be opens private, loopback and shared ones and no other."""
    if EVERY_RANGE.permits(address, 80) and not NOTHING_OPENED.permits(address, 80):
        opened = effective_address(address)
        assert opened.is_private or opened in ipaddress.ip_network("100.64.0.0/10")
        assert not any((opened.is_link_local, opened.is_multicast, opened.is_unspecified))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "//example.com/", "example.com", "",
        "http:///path", "http://user@example.com/", "http://user:pw@example.com/", "http://@example.com/",
        "http://example.com:0/", "http://example.com:65536/", "http://example.com:99999999/", "http://exa mple.com/",
        "http://example.com/\r\nX: y", "http://example.com/\x00", "http://ⓛocalhost/", "http://exämple.com/",
        "http://2130706433/", "http://017700000001/", "http://0x7f.1/", "http://0x7f000001/", "http://127.1/",
        "http://0177.0.0.1/", "http://0x/", "http://1.2.3.4.5/", "http://256.1.1.1/", "http://[fe80::1%25eth0]/",
        "http://[::1/", "http://exam_ple..com/", "http://-example.com/", "http://example.com\\@127.0.0.1/",
        "http://127.0.0.1/", "https://127.0.0.1:8443/", "http://127.0.0.1./", "http://[::1]/", "http://0.0.0.0/",
        "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://169.254.169.254/latest/meta-data/",
        "http://100.64.0.1/", "http://[fd00:ec2::254]/", "http://" + "a" * 64 + ".com/",
    ],
)  # fmt: skip
def test_url_that_needs_no_lookup_to_be_refused(url: str) -> None:
    with pytest.raises(EgressRefusedError):
        NOTHING_OPENED.check_url(url)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://Example.COM./x", "example.com", 80),
        ("https://example.com/x?y={z}", "example.com", 443),
        ("https://api_1.example.com:8443", "api_1.example.com", 8443),
        ("https://[2606:4700::1111]/", "2606:4700::1111", 443),
        ("http://8.8.8.8:8080/", "8.8.8.8", 8080),
        ("http://localhost/", "localhost", 80),
    ],
)
def test_destination_of_a_url(url: str, host: str, port: int) -> None:
    destination = NOTHING_OPENED.check_url(url)
    assert (destination.host, destination.port) == (host, port)


def test_refusal_shows_neither_path_nor_credential() -> None:
    with pytest.raises(EgressRefusedError) as refused:
        parse_destination("http://user:hunter2@example.com/secret-path")
    assert "hunter2" not in str(refused.value)
    assert "secret-path" not in str(refused.value)


@pytest.mark.parametrize(
    ("entry", "address", "port", "permitted"),
    [
        ("127.0.0.1:8090", "127.0.0.1", 8090, True),
        ("127.0.0.1:8090", "127.0.0.1", 8091, False),
        ("127.0.0.1:8090", "127.0.0.2", 8090, False),
        ("127.0.0.0/8", "127.9.9.9", 1, True),
        ("127.0.0.0/8:8090", "127.9.9.9", 8090, True),
        ("127.0.0.0/8:8090", "127.9.9.9", 80, False),
        ("127.0.0.0/8", "10.0.0.1", 1, False),
        ("127.0.0.1", "::ffff:127.0.0.1", 1, True),
        ("127.0.0.1", "::1", 1, False),
        ("10.1.2.3", "10.1.2.3", 443, True),
        ("::1", "::1", 443, True),
        ("[::1]:8090", "::1", 8090, True),
        ("[::1]:8090", "::1", 443, False),
        ("fd12::/16", "fd12::7", 443, True),
    ],
)
def test_allow_list_entry_opens_exactly_what_it_says(entry: str, address: str, port: int, permitted: object) -> None:
    assert parse_allow([entry]).permits(ipaddress.ip_address(address), port) is permitted


def test_allowed_name_opens_private_addresses_for_that_name_only() -> None:
    policy = parse_allow(["Host.Internal:8443"])
    private, link_local = ipaddress.ip_address("10.1.2.3"), ipaddress.ip_address("169.254.1.1")
    assert policy.permits(private, 8443, host="host.internal")
    assert not policy.permits(private, 443, host="host.internal")
    assert not policy.permits(private, 8443, host="other.internal")
    assert not policy.permits(private, 8443)
    assert not policy.permits(link_local, 8443, host="host.internal")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("0.0.0.0/0", "only private"), ("::/0", "only private"), ("8.8.8.8", "only private"),
        ("169.254.0.0/16", "only private"), ("169.254.169.254", "only private"), ("224.0.0.1", "only private"),
        ("10.0.0.0/7", "only private"), ("0.0.0.0/32", "only private"), ("::ffff:127.0.0.1", "only private"),
        ("fd00:ec2::254", "metadata"), ("100.100.100.200", "metadata"),
        ("10.1.2.3/8", "host bits"), ("10.0.0.0/33", "not a network"), ("host/24", "not a valid name"),
        ("127.0.0.1:0", "port"), ("127.0.0.1:65536", "port"), ("127.0.0.1:999999999999", "port"),
        ("2130706433", "number"), ("0x7f.1", "number"), ("", "expected an address"), ("a b", "not a valid name"),
        ("http://host", "expected an address"), ("fe80::1%eth0", "only private"), ("*.internal", "not a valid name"),
        ("host:port", "expected an address"),
    ],
)  # fmt: skip
def test_allow_list_entry_that_cannot_be_used_says_why_and_where(entry: str, says: str) -> None:
    with pytest.raises(AllowListError, match=says) as refused:
        parse_allow(["127.0.0.1", entry])
    assert refused.value.index == 1


def test_gate_judges_the_address_it_is_asked_for() -> None:
    gate = SocketGate(parse_allow(["127.0.0.1:8090"]))
    connecting_to("127.0.0.1")
    with pytest.raises(EgressRefusedError):
        gate((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 8091)))
    gate((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 8090))).close()
