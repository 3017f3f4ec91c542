"""One attempt of an HTTP node type: render, send once, and say truthfully what came of it (CMP-403, CMP-405)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from compensation.connectors.credentials import Secret, redact_json
from compensation.connectors.request import CredentialMissingError, RequestInvalidError, render
from compensation.connectors.session import EgressSession, ErrorClass, Exchange
from compensation.domain.canonical import IJsonError, parse_ijson
from compensation.domain.jsonpath import PathNotFoundError, extract
from compensation.domain.node_type import NodeTypeSpec
from compensation.domain.retry import Answer

RECEIPT_LENGTH = 512
_SECONDS = re.compile(r"\d{1,9}")
_REDIRECTION = range(300, 400)


@dataclass(frozen=True, slots=True)
class CallResult:
    """What one attempt brought back.

    `error_class` is None exactly for a declared success, else a word of `ErrorClass` or `http-<status>`: never text
    of the other system. `sent`: some byte may have left, so a failure leaves the effect unknown (CMP-405).
    `body`, `receipt` and `output` are scrubbed of the call's credentials (CMP-304). Durations are monotonic
    milliseconds from the start; `admitted_ms` is when a connection was ready for the request.
    """

    status: int | None
    error_class: str | None
    sent: bool
    intent_at: datetime
    observed_ms: float
    admitted_ms: float | None = None
    readable: bool = False
    body: object = field(default=None, repr=False)
    receipt: str | None = None
    output: object = field(default=None, repr=False)
    retry_after_ms: int | None = None

    @property
    def timed_out(self) -> bool:
        return self.error_class == ErrorClass.TIMEOUT

    def answer(self) -> Answer:
        """The same, as the retry rules read it."""
        code = self.body.get("error") if isinstance(self.body, dict) else None
        return Answer(
            status=self.status,
            sent=self.sent,
            timed_out=self.timed_out,
            body_readable=self.readable,
            error_class=self.error_class,
            error_code=code if isinstance(code, str) else None,
            retry_after_ms=self.retry_after_ms,
        )

    def clocks(self) -> dict[str, str | None]:
        """The wire's four clocks. `effectAt` stays null: only the other system could know it."""
        return {
            "intentAt": self._mark(0.0),
            "admittedAt": self._mark(self.admitted_ms),
            "effectAt": None,
            "observedAt": self._mark(self.observed_ms),
        }

    def _mark(self, after_ms: float | None) -> str | None:
        if after_ms is None:
            return None
        at = (self.intent_at + timedelta(milliseconds=after_ms)).astimezone(UTC)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def call(
    session: EgressSession,
    spec: NodeTypeSpec,
    *,
    key: str,
    frozen_input: bytes,
    credentials: Mapping[str, Secret],
    timeout_ms: int,
    intent_at: datetime,
) -> CallResult:
    """One attempt: one send at most, within `timeout_ms` from connect to last byte. Only cancellation is raised.

    `frozen_input` is the obligation's RFC 8785 text, `key` its idempotency key (CMP-311), `credentials` what the
    node type's own references resolve to, `intent_at` the caller's wall clock when it decided to call.
    """
    try:
        request = render(spec, key=key, frozen_input=frozen_input, credentials=credentials)
    except RequestInvalidError:
        return unsent(ErrorClass.REQUEST_INVALID, intent_at)
    except CredentialMissingError:
        return unsent(ErrorClass.CREDENTIAL_MISSING, intent_at)
    exchange = await session.exchange(request, timeout_ms=timeout_ms)
    return _interpret(exchange, spec, request.secrets(), intent_at)


@dataclass(frozen=True, slots=True)
class ParsedBody:
    """A scrubbed JSON body, or the fact that it is none."""

    readable: bool
    value: object = field(default=None, repr=False)

    def text_at(self, path: str | None) -> str | None:
        """A scalar as text, as receipts are kept; None for anything else and for what is not there."""
        found = self.at(path)
        if isinstance(found, bool) or not isinstance(found, (str, int, float)):
            return None
        return str(found)[:RECEIPT_LENGTH]

    def at(self, path: str | None) -> object:
        if path is None or not self.readable:
            return None
        try:
            return extract(path, self.value)
        except PathNotFoundError:
            return None


def parse_body(exchange: Exchange, secrets: Sequence[Secret]) -> ParsedBody:
    """The answer's I-JSON, or null when it is empty. Anything else is not read: outputs are digested later, and a
    page that a proxy put in front of a success proves nothing (CMP-405)."""
    if exchange.error is not None:
        return ParsedBody(readable=False)
    if not exchange.body:
        return ParsedBody(readable=True)
    try:
        return ParsedBody(readable=True, value=redact_json(parse_ijson(exchange.body), secrets))
    except IJsonError:
        return ParsedBody(readable=False)


def error_class_of(exchange: Exchange) -> str:
    """The machine word for an exchange that is no declared success."""
    if exchange.error is not None:
        return exchange.error
    return ErrorClass.REDIRECT if exchange.status in _REDIRECTION else f"http-{exchange.status}"


def _interpret(exchange: Exchange, spec: NodeTypeSpec, secrets: Sequence[Secret], intent_at: datetime) -> CallResult:
    body = parse_body(exchange, secrets)
    error: str | None = None
    if exchange.error is not None or exchange.status not in spec.success:
        error = error_class_of(exchange)
    elif not body.readable:
        error = ErrorClass.UNREADABLE
    return CallResult(
        status=exchange.status,
        error_class=error,
        sent=exchange.sent,
        intent_at=intent_at,
        observed_ms=exchange.observed_ms,
        admitted_ms=exchange.admitted_ms,
        readable=body.readable,
        body=body.value,
        receipt=body.text_at(spec.receipt) if error is None else None,
        output=body.at(spec.output) if error is None else None,
        retry_after_ms=_retry_after_ms(exchange, intent_at),
    )


def unsent(error: ErrorClass, intent_at: datetime) -> CallResult:
    """An attempt that ended before one byte of it left us."""
    return CallResult(status=None, error_class=error, sent=False, intent_at=intent_at, observed_ms=0.0)


def _retry_after_ms(exchange: Exchange, intent_at: datetime) -> int | None:
    text = (exchange.retry_after or "").strip()
    if _SECONDS.fullmatch(text):
        return int(text) * 1000
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    observed_at = intent_at + timedelta(milliseconds=exchange.observed_ms)
    return max(0, round((at - observed_at).total_seconds() * 1000))
