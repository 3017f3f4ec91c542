"""One exchange with another system: one send, one deadline over all of it, and the truth about what was sent."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from enum import StrEnum
from types import SimpleNamespace, TracebackType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from compensation.connectors.egress import CheckedResolver, EgressPolicy, EgressRefusedError, SocketGate, connecting_to
from compensation.connectors.request import OutboundRequest
from compensation.domain import retry

RESPONSE_CAP = 262_144
MAX_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "recourse/1"}


class ErrorClass(StrEnum):
    """Machine words for what went wrong; with `http-<status>` the whole vocabulary, never a provider's text."""

    TIMEOUT = "timeout"
    CONNECTION_REFUSED = "connection-refused"
    CONNECTION_FAILED = "connection-failed"
    CONNECTION_LOST = "connection-lost"
    DNS = "dns"
    TLS = "tls"
    EGRESS_REFUSED = "egress-refused"
    RESPONSE_TOO_LARGE = "response-too-large"
    UNREADABLE = "unreadable"
    REDIRECT = "redirect"
    REQUEST_INVALID = retry.REQUEST_INVALID
    CREDENTIAL_MISSING = retry.CREDENTIAL_MISSING
    LEASE_OVER = "lease-over"


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one send brought back. `sent`: some byte of it may have left. Durations are monotonic, from the start."""

    status: int | None
    body: bytes = field(repr=False)
    retry_after: str | None
    error: ErrorClass | None
    sent: bool
    admitted_ms: float | None
    observed_ms: float


class _ResponseTooLargeError(Exception):
    pass


@dataclass(slots=True)
class _Progress:
    """Filled in while an exchange goes on, so that what was reached survives the error that ended it."""

    started: float = field(default_factory=time.monotonic)
    admitted_ms: float | None = None
    status: int | None = None
    body: bytes = b""
    retry_after: str | None = None
    location: str | None = None

    def elapsed_ms(self) -> float:
        return (time.monotonic() - self.started) * 1000

    def admit(self) -> None:
        if self.admitted_ms is None:
            self.admitted_ms = self.elapsed_ms()

    def close(self, error: ErrorClass | None) -> Exchange:
        return Exchange(
            status=self.status,
            body=self.body if error is None else b"",
            retry_after=self.retry_after,
            error=error,
            sent=self.admitted_ms is not None,
            admitted_ms=self.admitted_ms,
            observed_ms=self.elapsed_ms(),
        )


class EgressSession:
    """The connections of one egress policy; `Sessions.for_policy` makes them."""

    def __init__(self, policy: EgressPolicy, *, resolver: AbstractResolver, response_cap: int) -> None:
        self.policy = policy
        self._cap = response_cap
        self._pooled = _client(policy, resolver, single_use=False)
        self._single_use = _client(policy, resolver, single_use=True)

    async def exchange(self, request: OutboundRequest, *, timeout_ms: int) -> Exchange:
        """Send once and read the answer within `timeout_ms`, connect to last byte (CMP-403). Errors are values."""
        progress = _Progress()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._converse(request, progress)
        except (OSError, aiohttp.ClientError, _ResponseTooLargeError) as error:
            return progress.close(_classify(error))
        return progress.close(None)

    async def close(self) -> None:
        await self._pooled.close()
        await self._single_use.close()

    async def _converse(self, request: OutboundRequest, progress: _Progress) -> None:
        url = request.url
        for _ in range(1 + MAX_REDIRECTS * request.follow_same_origin):
            await self._send(request, url, progress)
            target = _same_origin_target(url, progress) if request.follow_same_origin else None
            if target is None:
                return
            url = target

    async def _send(self, request: OutboundRequest, url: str, progress: _Progress) -> None:
        connecting_to(self.policy.check_url(url).host)
        client = self._pooled if request.repeatable else self._single_use
        async with client.request(
            request.method,
            URL(url, encoded=True),
            headers=request.revealed_headers(),
            data=request.body,
            allow_redirects=False,
            trace_request_ctx=progress,
        ) as response:
            progress.status = response.status
            progress.retry_after = response.headers.get("Retry-After")
            progress.location = response.headers.get("Location")
            progress.body = await self._read(response)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > self._cap:
                response.close()
                raise _ResponseTooLargeError
        return bytes(body)


class Sessions:
    """Outbound connections by egress policy: a pooled connection never serves a policy that did not permit it."""

    def __init__(self, *, response_cap: int = RESPONSE_CAP, resolver: AbstractResolver | None = None) -> None:
        self._cap = response_cap
        self._resolver = resolver
        self._by_policy: dict[EgressPolicy, EgressSession] = {}

    def for_policy(self, policy: EgressPolicy) -> EgressSession:
        """The session of `policy`, opened on first use. Call it in the event loop that will use it."""
        session = self._by_policy.get(policy)
        if session is None:
            resolver = self._resolver or ThreadedResolver()
            session = EgressSession(policy, resolver=resolver, response_cap=self._cap)
            self._by_policy[policy] = session
        return session

    async def close(self) -> None:
        while self._by_policy:
            _, session = self._by_policy.popitem()
            await session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _client(policy: EgressPolicy, resolver: AbstractResolver, *, single_use: bool) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        # The caller bounds what is in flight; a queue here would eat an attempt's time before anything is sent.
        limit=0,
        force_close=single_use,
        use_dns_cache=False,
        resolver=CheckedResolver(policy, resolver),
        socket_factory=SocketGate(policy),
        happy_eyeballs_delay=None,
    )
    client = aiohttp.ClientSession(
        connector=connector,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        headers=_HEADERS,
        timeout=_NO_TIMEOUT,
        trace_configs=[_admission_trace()],
    )
    # aiohttp sends PUT and DELETE again by itself when a kept-alive connection breaks; an attempt is one send.
    client._retry_connection = False  # noqa: SLF001 - there is no public switch; a test proves that this one works
    return client


def _admission_trace() -> aiohttp.TraceConfig:
    """From the moment a connection is handed to the request, its bytes may leave; before that none can."""

    async def admitted(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        context.trace_request_ctx.admit()

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(admitted)
    trace.on_connection_reuseconn.append(admitted)
    return trace


def _same_origin_target(url: str, progress: _Progress) -> str | None:
    if progress.status not in _REDIRECTS or progress.location is None:
        return None
    try:
        target = URL(url, encoded=True).join(URL(progress.location, encoded=True))
        same = target.origin() == URL(url, encoded=True).origin()
    except ValueError:
        return None
    return str(target) if same else None


def _classify(error: Exception) -> ErrorClass:
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        return _classify_connecting(error)
    words: tuple[tuple[type[Exception], ErrorClass], ...] = (
        (EgressRefusedError, ErrorClass.EGRESS_REFUSED),
        (_ResponseTooLargeError, ErrorClass.RESPONSE_TOO_LARGE),
        (aiohttp.ClientSSLError, ErrorClass.TLS),
        (aiohttp.ClientResponseError, ErrorClass.UNREADABLE),
        (aiohttp.InvalidURL, ErrorClass.EGRESS_REFUSED),
        (aiohttp.ClientError, ErrorClass.CONNECTION_LOST),
        (TimeoutError, ErrorClass.TIMEOUT),
    )
    return next((word for kind, word in words if isinstance(error, kind)), ErrorClass.CONNECTION_LOST)


def _classify_connecting(error: aiohttp.ClientConnectorError) -> ErrorClass:
    if isinstance(error.os_error, EgressRefusedError):
        return ErrorClass.EGRESS_REFUSED
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return ErrorClass.DNS
    if isinstance(error.os_error, ConnectionRefusedError):
        return ErrorClass.CONNECTION_REFUSED
    return ErrorClass.CONNECTION_FAILED
