"""One exchange over real sockets: deadline, single send, size cap, truth about what was sent (CMP-403, CMP-405)."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from compensation.connectors.egress import EgressPolicy, parse_allow
from compensation.connectors.request import OutboundRequest
from compensation.connectors.session import ErrorClass, Exchange, Sessions
from tests.integration.connectors.downstream import Downstream, Exchanged, Respond, in_loop

LOOPBACK = parse_allow(["127.0.0.1"])
SHORT_MS = 300


async def send(
    url: str,
    *,
    method: str = "POST",
    policy: EgressPolicy = LOOPBACK,
    timeout_ms: int = 30_000,
    body: bytes | None = b'{"chargeId":"c-1"}',
    follow: bool = False,
) -> Exchange:
    request = OutboundRequest(method=method, url=url, headers=(), body=body, follow_same_origin=follow)
    async with Sessions() as sessions:
        return await sessions.for_policy(policy).exchange(request, timeout_ms=timeout_ms)


async def send_to(respond: Respond, **options: object) -> tuple[Exchange, Downstream]:
    async with Downstream(respond) as server:
        return await send(server.url + "/refund", **options), server  # type: ignore[arg-type]


@in_loop
async def test_answer_is_read_whole_and_the_body_sent_byte_for_byte() -> None:
    exchange, server = await send_to(lambda exchanged: exchanged.answer(b'{"a": 1}', status=201))
    assert (exchange.status, exchange.body, exchange.error, exchange.sent) == (201, b'{"a": 1}', None, True)
    assert exchange.admitted_ms is not None
    assert 0 < exchange.admitted_ms <= exchange.observed_ms
    assert [request.body for request in server.received] == [b'{"chargeId":"c-1"}']


@contextmanager
def listener_that_accepts_nobody() -> Iterator[int]:
    """A port whose accept queue is full, so that a connect gets no answer at all."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)  # noqa: FBT003 - the standard library's own signature
            filler.connect_ex(("127.0.0.1", port))
        yield port
        for filler in fillers:
            filler.close()


@in_loop
async def test_timeout_while_connecting_has_sent_nothing() -> None:
    with listener_that_accepts_nobody() as port:
        exchange = await send(f"http://127.0.0.1:{port}/", timeout_ms=SHORT_MS)
    assert (exchange.error, exchange.sent, exchange.status) == (ErrorClass.TIMEOUT, False, None)
    assert SHORT_MS <= exchange.observed_ms < SHORT_MS * 20


async def no_headers(exchanged: Exchanged) -> None:
    await exchanged.hang()


async def half_the_headers(exchanged: Exchanged) -> None:
    await exchanged.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    await exchanged.hang()


async def interim_answers_without_end(exchanged: Exchanged) -> None:
    while await exchanged.goes_on(after_seconds=0.01):
        await exchanged.write(b"HTTP/1.1 102 Processing\r\n\r\n")


async def slow_body(exchanged: Exchanged) -> None:
    """Never silent for long: only a deadline over the whole exchange ends it."""
    await exchanged.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while await exchanged.goes_on(after_seconds=0.01):
        await exchanged.write(b" ")


@pytest.mark.parametrize("respond", [no_headers, half_the_headers, interim_answers_without_end, slow_body])
@in_loop
async def test_timeout_after_sending_leaves_the_effect_unknown(respond: Respond) -> None:
    """CMP-403: the deadline covers connect to last byte; what left has left."""
    exchange, server = await send_to(respond, timeout_ms=SHORT_MS)
    assert (exchange.error, exchange.sent, exchange.body) == (ErrorClass.TIMEOUT, True, b"")
    assert SHORT_MS <= exchange.observed_ms < SHORT_MS * 20
    assert len(server.received) == 1


async def endless_body(exchanged: Exchanged) -> None:
    await exchanged.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not exchanged.stopping.is_set():
        await exchanged.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")


async def long_body(exchanged: Exchanged) -> None:
    await exchanged.answer(b'"' + b"x" * 262_143 + b'"')


@pytest.mark.parametrize("respond", [endless_body, long_body])
@in_loop
async def test_body_over_the_cap_is_given_up(respond: Respond) -> None:
    exchange, _ = await send_to(respond)
    assert (exchange.error, exchange.sent, exchange.status) == (ErrorClass.RESPONSE_TOO_LARGE, True, 200)
    assert exchange.body == b""


@in_loop
async def test_body_at_the_cap_is_read() -> None:
    exchange, _ = await send_to(lambda exchanged: exchanged.answer(b"x" * 262_144))
    assert (exchange.error, len(exchange.body)) == (None, 262_144)


async def endless_header(exchanged: Exchanged) -> None:
    await exchanged.write(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000)
    await exchanged.hang()


async def many_headers(exchanged: Exchanged) -> None:
    await exchanged.write(b"HTTP/1.1 200 OK\r\n" + b"X-Many: x\r\n" * 10_000)
    await exchanged.hang()


async def garbage(exchanged: Exchanged) -> None:
    await exchanged.write(b"\x00\xff this is no HTTP\r\n\r\n")


async def two_lengths(exchanged: Exchanged) -> None:
    await exchanged.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ")


@pytest.mark.parametrize("respond", [endless_header, many_headers, garbage, two_lengths])
@in_loop
async def test_what_is_no_http_answer_is_unreadable(respond: Respond) -> None:
    exchange, _ = await send_to(respond)
    assert (exchange.error, exchange.sent) == (ErrorClass.UNREADABLE, True)


async def reset_after_the_request(exchanged: Exchanged) -> None:
    exchanged.reset()


async def close_after_the_request(exchanged: Exchanged) -> None:
    exchanged.writer.close()


async def half_the_body(exchanged: Exchanged) -> None:
    await exchanged.answer(b'{"state":', length=100)
    exchanged.writer.close()


@pytest.mark.parametrize("respond", [reset_after_the_request, close_after_the_request, half_the_body])
@in_loop
async def test_connection_lost_after_the_request_was_sent(respond: Respond) -> None:
    exchange, server = await send_to(respond)
    assert (exchange.error, exchange.sent, exchange.body) == (ErrorClass.CONNECTION_LOST, True, b"")
    assert len(server.received) == 1


@in_loop
async def test_connection_reset_before_the_request_was_read_counts_as_sent() -> None:
    """We cannot know how far it got, so the effect is unknown."""
    async with Downstream(on_connect=lambda writer: writer.transport.abort()) as server:
        exchange = await send(server.url)
    assert (exchange.error, exchange.sent) == (ErrorClass.CONNECTION_LOST, True)
    assert server.received == []


@in_loop
async def test_nobody_listens() -> None:
    async with Downstream() as server:
        url = server.url
    exchange = await send(url)
    assert (exchange.error, exchange.sent, exchange.status) == (ErrorClass.CONNECTION_REFUSED, False, None)


@in_loop
async def test_name_without_address() -> None:
    exchange = await send("http://nowhere.invalid/")
    assert (exchange.error, exchange.sent) == (ErrorClass.DNS, False)


@in_loop
async def test_tls_to_a_server_that_speaks_none_sends_no_request() -> None:
    async with Downstream(on_connect=lambda writer: writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as server:
        exchange = await send(server.url.replace("http", "https"))
    assert (exchange.error, exchange.sent) == (ErrorClass.TLS, False)
    assert server.received == []


@in_loop
async def test_certificate_that_nobody_vouches_for_sends_no_request(self_signed: ssl.SSLContext) -> None:
    reached: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=self_signed)
    async with server:
        exchange = await send(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    assert (exchange.error, exchange.sent) == (ErrorClass.TLS, False)
    assert not any(reached)


async def hang_up_on_the_second(exchanged: Exchanged) -> None:
    if exchanged.number == 1:
        await exchanged.answer()
    else:
        exchanged.writer.close()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST", "PATCH"])
@in_loop
async def test_kept_alive_connection_that_breaks_is_not_sent_again(method: str) -> None:
    """An attempt is one send; aiohttp on its own would send GET, PUT and DELETE twice here."""
    async with Downstream(hang_up_on_the_second) as server, Sessions() as sessions:
        session = sessions.for_policy(LOOPBACK)
        request = OutboundRequest(method=method, url=server.url, headers=(), body=b"{}", repeatable=True)
        first = await session.exchange(request, timeout_ms=30_000)
        second = await session.exchange(request, timeout_ms=30_000)
    assert first.error is None
    assert (second.error, second.sent) == (ErrorClass.CONNECTION_LOST, True)
    assert (len(server.received), server.connections) == (2, 1)


@in_loop
async def test_request_that_may_not_be_repeated_gets_a_connection_of_its_own() -> None:
    """CMP-405: a stale pooled connection would make its effect unknown for nothing."""
    async with Downstream() as server, Sessions() as sessions:
        session = sessions.for_policy(LOOPBACK)
        for repeatable in (True, False, False, True):
            request = OutboundRequest(method="POST", url=server.url, headers=(), repeatable=repeatable)
            assert (await session.exchange(request, timeout_ms=30_000)).error is None
    assert (len(server.received), server.connections) == (4, 3)


@in_loop
async def test_gzip_bomb_is_never_inflated() -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    exchange, server = await send_to(lambda exchanged: exchanged.answer(bomb, headers={"Content-Encoding": "gzip"}))
    assert exchange.body == bomb
    assert server.received[0].headers["accept-encoding"] == "identity"


async def set_a_cookie(exchanged: Exchanged) -> None:
    await exchanged.answer(headers={"Set-Cookie": "session=1; Path=/"})


@in_loop
async def test_no_proxy_of_the_environment_and_no_cookie_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Downstream() as proxy, Downstream(set_a_cookie) as server, Sessions() as sessions:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        # By name, since even a real cookie jar keeps nothing for a bare address.
        url = f"http://localhost:{server.port}/"
        request = OutboundRequest(method="GET", url=url, headers=(), repeatable=True)
        for _ in range(2):
            await sessions.for_policy(parse_allow(["localhost"])).exchange(request, timeout_ms=30_000)
    assert (len(proxy.received), len(server.received)) == (0, 2)
    assert not any("cookie" in request.headers for request in server.received)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["POST", "GET"])
@in_loop
async def test_redirect_of_an_effect_is_not_followed_even_to_the_same_origin(status: int, method: str) -> None:
    exchange, server = await send_to(
        lambda exchanged: exchanged.answer(status=status, headers={"Location": "/elsewhere"}), method=method
    )
    assert (exchange.status, exchange.error, len(server.received)) == (status, None, 1)


@in_loop
async def test_readback_follows_its_own_origin_a_few_times_and_no_other() -> None:
    async def to_the_other(exchanged: Exchanged) -> None:
        await exchanged.answer(status=302, headers={"Location": other.url + "/stolen"})

    async def around(exchanged: Exchanged) -> None:
        await exchanged.answer(status=302, headers={"Location": "?again"})

    async def one_step(exchanged: Exchanged) -> None:
        if exchanged.request.target == "/refund":
            await exchanged.answer(status=307, headers={"Location": "refund/"})
        else:
            await exchanged.answer(b'{"arrived":true}')

    async with Downstream() as other:
        away, _ = await send_to(to_the_other, method="GET", body=None, follow=True)
    circle, circled = await send_to(around, method="GET", body=None, follow=True)
    arrived, _ = await send_to(one_step, method="GET", body=None, follow=True)
    assert (away.status, other.received) == (302, [])
    assert (circle.status, len(circled.received)) == (302, 4)
    assert (arrived.status, arrived.body) == (200, b'{"arrived":true}')


@in_loop
async def test_cancelling_the_caller_cancels_the_exchange() -> None:
    reached = asyncio.Event()

    async def hang(exchanged: Exchanged) -> None:
        reached.set()
        await exchanged.hang()

    async with Downstream(hang) as server:
        task = asyncio.ensure_future(send(server.url))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@in_loop
async def test_five_hundred_at_once_each_get_their_own_answer() -> None:
    async def echo(exchanged: Exchanged) -> None:
        await exchanged.answer(exchanged.request.target.encode())

    async with Downstream(echo) as server, Sessions() as sessions:
        session = sessions.for_policy(LOOPBACK)
        requests = [OutboundRequest(method="POST", url=f"{server.url}/{number}", headers=()) for number in range(500)]
        exchanges = await asyncio.gather(*(session.exchange(request, timeout_ms=30_000) for request in requests))
    assert [exchange.body for exchange in exchanges] == [f"/{number}".encode() for number in range(500)]
    assert len(server.received) == 500
