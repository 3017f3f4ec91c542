"""What the sandbox's systems do: the id a verb makes, and which verb undoes which."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

SYSTEMS = ("inventory", "payments", "shipping", "travel", "ledger", "mail")
ECHOED = ("amount", "currency")


@dataclass(frozen=True)
class Verb:
    """One thing a system does. `port` names the id it makes, or, for an inverse, the id of what it undoes."""

    system: str
    name: str
    port: str
    past: str
    prefix: str = ""

    @property
    def inverse(self) -> bool:
        return not self.prefix


VERBS = {
    (verb.system, verb.name): verb
    for verb in (
        Verb("inventory", "reserve", "reservationId", "reserved", "res"),
        Verb("payments", "charge", "chargeId", "charged", "ch"),
        Verb("payments", "transfer", "transferId", "transferred", "tr"),
        Verb("shipping", "book", "shipmentId", "booked", "shp"),
        Verb("mail", "send", "messageId", "sent", "msg"),
        Verb("ledger", "hold", "holdId", "held", "hold"),
        Verb("ledger", "post", "entryId", "posted", "ent"),
        Verb("travel", "book_flight", "bookingId", "flight booked", "flt"),
        Verb("travel", "book_hotel", "bookingId", "hotel booked", "htl"),
        Verb("travel", "book_car", "bookingId", "car booked", "car"),
        Verb("travel", "issue", "ticketId", "issued", "tkt"),
        Verb("inventory", "release", "reservationId", "released"),
        Verb("payments", "refund", "chargeId", "refunded"),
        Verb("payments", "recall", "transferId", "recalled"),
        Verb("shipping", "cancel", "shipmentId", "cancelled"),
        Verb("ledger", "release", "holdId", "released"),
        Verb("travel", "cancel", "bookingId", "cancelled"),
        Verb("mail", "recall", "messageId", "recalled"),
    )
}


@dataclass(frozen=True)
class Deed:
    """What one posting does: its answer, and the subject (`<port>:<id>`) it makes or undoes, when there is one."""

    answer: dict[str, Any]
    subject: str | None
    inverse: bool


def perform(*, system: str, verb: str, seed: str, body: dict[str, Any]) -> Deed:
    """The deed of posting `body`; ids derive from `seed`, so that one idempotency key always names the same thing."""
    digest = hashlib.sha256(seed.encode()).hexdigest()[:16]
    answer = {"receiptId": f"rcpt_{digest}", "state": "applied", "system": system, "verb": verb}
    answer |= {name: body[name] for name in ECHOED if name in body}
    known = VERBS.get((system, verb))
    named = _subject_id(known, digest, body) if known else None
    if known is None or named is None:
        return Deed(answer=answer, subject=None, inverse=False)
    return Deed(answer=answer | {known.port: named}, subject=f"{known.port}:{named}", inverse=known.inverse)


def _subject_id(verb: Verb, digest: str, body: dict[str, Any]) -> str | None:
    if not verb.inverse:
        return f"{verb.prefix}_{digest}"
    value = body.get(verb.port)
    return value if isinstance(value, str) else None


def past_tense(system: str, verb: str) -> str:
    """The verb as a person reads it in a ledger."""
    known = VERBS.get((system, verb))
    return known.past if known else verb.replace("_", " ")
