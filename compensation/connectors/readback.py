"""Asking the other system whether an unknown effect was applied (CMP-405)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from compensation.connectors.credentials import Secret
from compensation.connectors.http import ParsedBody, error_class_of, parse_body
from compensation.connectors.request import CredentialMissingError, RequestInvalidError, render_readback
from compensation.connectors.session import EgressSession, ErrorClass, Exchange
from compensation.domain.node_type import NodeTypeSpec
from compensation.domain.readback import ReadVerdict, read_verdict


@dataclass(frozen=True, slots=True)
class ReadbackVerdict:
    """What one readback said. `error_class` (as in `CallResult`) tells why it is unknown, else it is None."""

    verdict: ReadVerdict
    http_status: int | None
    receipt: str | None
    error_class: str | None


async def read_back(
    session: EgressSession,
    spec: NodeTypeSpec,
    *,
    key: str,
    frozen_input: bytes,
    credentials: Mapping[str, Secret],
    timeout_ms: int,
) -> ReadbackVerdict:
    """One readback as the node type declares it. Whatever is not exactly a declared answer is unknown."""
    try:
        request = render_readback(spec, key=key, frozen_input=frozen_input, credentials=credentials)
    except RequestInvalidError:
        return _unknown(ErrorClass.REQUEST_INVALID)
    except CredentialMissingError:
        return _unknown(ErrorClass.CREDENTIAL_MISSING)
    exchange = await session.exchange(request, timeout_ms=timeout_ms)
    body = parse_body(exchange, request.secrets())
    verdict = _verdict(spec, exchange, body)
    return ReadbackVerdict(
        verdict=verdict,
        http_status=exchange.status,
        receipt=body.text_at(spec.receipt) if verdict is ReadVerdict.APPLIED else None,
        error_class=_why_unknown(exchange, body) if verdict is ReadVerdict.UNKNOWN else None,
    )


def _verdict(spec: NodeTypeSpec, exchange: Exchange, body: ParsedBody) -> ReadVerdict:
    if exchange.error is not None or spec.readback is None:
        return ReadVerdict.UNKNOWN
    return read_verdict(
        exchange.status, body.value, applied=spec.readback.applied, not_applied=spec.readback.not_applied
    )


def _why_unknown(exchange: Exchange, body: ParsedBody) -> str:
    if exchange.error is None and exchange.status == HTTPStatus.OK and not body.readable:
        return ErrorClass.UNREADABLE
    return error_class_of(exchange)


def _unknown(error: ErrorClass) -> ReadbackVerdict:
    return ReadbackVerdict(verdict=ReadVerdict.UNKNOWN, http_status=None, receipt=None, error_class=error)
