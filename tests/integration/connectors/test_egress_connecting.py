"""The egress guard at the moment of connecting: changed DNS answers, odd spellings, pools."""

from __future__ import annotations

import socket

import pytest
from aiohttp import ClientConnectorError
from aiohttp.abc import AbstractResolver, ResolveResult

from compensation.connectors.egress import EgressPolicy, EgressRefusedError, parse_allow
from compensation.connectors.request import OutboundRequest
from compensation.connectors.session import ErrorClass, Exchange, Sessions
from tests.integration.connectors.downstream import Downstream, Exchanged, in_loop

LOOPBACK = parse_allow(["127.0.0.1"])
NOTHING_OPENED = EgressPolicy()


class Answers(AbstractResolver):
    """A name server that gives one answer after the other, each a list of addresses."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked += 1
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self._answers.pop(0)
        ]

    async def close(self) -> None:
        self._answers.clear()


async def send(sessions: Sessions, url: str, policy: EgressPolicy, *, follow: bool = False) -> Exchange:
    request = OutboundRequest(method="GET", url=url, headers=(), repeatable=True, follow_same_origin=follow)
    return await sessions.for_policy(policy).exchange(request, timeout_ms=30_000)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "LOCALHOST", "0.0.0.0:{port}",
        "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "127.1",
        "0177.0.0.1", "169.254.169.254", "100.64.0.1", "[fd00:ec2::254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
    ],
)  # fmt: skip
@in_loop
async def test_nothing_reaches_a_refused_address_however_it_is_spelled(host: str) -> None:
    async with Downstream() as server, Sessions() as sessions:
        authority = host.format(port=server.port) if "{port}" in host else f"{host}:{server.port}"
        exchange = await send(sessions, f"http://{authority}/", NOTHING_OPENED)
    assert (exchange.error, exchange.sent, server.connections) == (ErrorClass.EGRESS_REFUSED, False, 0)


@in_loop
async def test_last_gate_alone_keeps_a_literal_address_out() -> None:
    """The earlier checks are there for clear errors; this one holds even if a URL slips past them."""
    async with Downstream() as server, Sessions() as sessions:
        client = sessions.for_policy(NOTHING_OPENED)._pooled
        with pytest.raises(ClientConnectorError) as refused:
            await client.get(server.url)
    assert isinstance(refused.value.os_error, EgressRefusedError)
    assert server.connections == 0


@in_loop
async def test_answer_that_changes_between_check_and_connect_cannot_matter() -> None:
    """One lookup per connection, and the address that was checked is the one connected."""
    resolver = Answers(["127.0.0.2"], ["127.0.0.1"])
    opened = parse_allow(["127.0.0.2"])
    async with Downstream() as server, Sessions(resolver=resolver) as sessions:
        url = f"http://rebinding.example:{server.port}/"
        checked = await send(sessions, url, opened)
        assert resolver.asked == 1
        changed = await send(sessions, url, opened)
    assert (checked.error, checked.sent) == (ErrorClass.CONNECTION_REFUSED, False)
    assert (changed.error, changed.sent) == (ErrorClass.EGRESS_REFUSED, False)
    assert server.connections == 0


@in_loop
async def test_of_several_addresses_only_permitted_ones_are_tried() -> None:
    resolver = Answers(["10.0.0.1", "127.0.0.1"], ["10.0.0.1", "::1"], [])
    async with Downstream() as server, Sessions(resolver=resolver) as sessions:
        url = f"http://several.example:{server.port}/"
        mixed = await send(sessions, url, parse_allow([f"127.0.0.1:{server.port}"]))
        none_permitted = await send(sessions, url, NOTHING_OPENED)
        no_address = await send(sessions, url, parse_allow(["127.0.0.0/8"]))
    assert (mixed.error, server.connections) == (None, 1)
    assert none_permitted.error == ErrorClass.EGRESS_REFUSED
    assert no_address.error == ErrorClass.DNS


@in_loop
async def test_opened_name_reaches_a_private_address_and_another_name_does_not() -> None:
    resolver = Answers(["127.0.0.1"], ["127.0.0.1"], ["169.254.169.254"])
    opened = parse_allow(["ledger.internal"])
    async with Downstream() as server, Sessions(resolver=resolver) as sessions:
        other = await send(sessions, f"http://other.internal:{server.port}/", opened)
        named = await send(sessions, f"http://Ledger.internal:{server.port}/", opened)
        metadata = await send(sessions, "http://ledger.internal:9/", opened)
    assert (other.error, named.error, metadata.error) == (ErrorClass.EGRESS_REFUSED, None, ErrorClass.EGRESS_REFUSED)
    assert len(server.received) == 1


@in_loop
async def test_pooled_connection_never_serves_another_policy() -> None:
    async with Downstream() as server, Sessions() as sessions:
        for _ in range(2):
            assert (await send(sessions, server.url, LOOPBACK)).error is None
        assert server.connections == 1
        refused = await send(sessions, server.url, NOTHING_OPENED)
        other = await send(sessions, server.url, parse_allow(["127.0.0.0/8"]))
    assert (refused.error, refused.sent) == (ErrorClass.EGRESS_REFUSED, False)
    assert other.error is None
    assert (server.connections, len(server.received)) == (2, 3)


@in_loop
async def test_equal_policies_share_their_connections() -> None:
    async with Downstream() as server, Sessions() as sessions:
        for _ in range(2):
            await send(sessions, server.url, parse_allow(["127.0.0.1"]))
    assert server.connections == 1


@in_loop
async def test_redirect_to_another_port_of_the_same_host_is_another_origin() -> None:
    async def away(exchanged: Exchanged) -> None:
        await exchanged.answer(status=307, headers={"Location": other.url})

    async with Downstream() as other, Downstream(away) as server, Sessions() as sessions:
        exchange = await send(sessions, server.url, LOOPBACK, follow=True)
    assert (exchange.status, other.connections) == (307, 0)
