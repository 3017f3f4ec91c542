"""How an entry stands, as pages say it: its state never claims more than its attempts prove (CMP-405)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from audit.principals import Principal
from compensation.connectors.session import ErrorClass
from compensation.domain.states import AttemptOutcome, ObligationState, Reason
from compensation.models import Attempt, Obligation, Run
from compensation.operations.safety import attempts_maybe_applied
from compensation.queries.projection import plan_projection
from compensation.web.words import EFFECT_UNKNOWN, PLAN_WAITS, phrase

NEVER_SENT: Final[Mapping[str, str]] = {
    ErrorClass.EGRESS_REFUSED: "this tenant may not call that address",
    ErrorClass.REQUEST_INVALID: "no valid request can be made of the frozen input",
    ErrorClass.CREDENTIAL_MISSING: "its credential is missing",
    ErrorClass.DNS: "the other system's name could not be found",
    ErrorClass.CONNECTION_REFUSED: "the other system refused the connection",
    ErrorClass.CONNECTION_FAILED: "the other system could not be reached",
    ErrorClass.TLS: "no secure connection could be made",
}
CLIENT_ERROR: Final = 4


@dataclass(frozen=True, slots=True)
class Standing:
    """``word`` is of the vocabulary ``entry``; ``because`` a phrase, empty when there is no reason to give."""

    word: str
    because: str
    maybe_applied: int


def standings(entries: Iterable[Obligation]) -> dict[str, Standing]:
    """By effect id, in a constant number of queries."""
    owed = list(entries)
    called = [entry for entry in owed if entry.attempts and entry.state != ObligationState.COMPLETED]
    unknown, last = attempts_maybe_applied(called), _last_attempts(called)
    return {entry.effect_id: _standing(entry, last.get(entry.pk), unknown.get(entry.pk, 0)) for entry in owed}


def standing_plan(principal: Principal, run: Run) -> dict[str, Any]:
    """The plan's projection; each entry also says ``shown`` (its word), ``because`` and ``maybeApplied``."""
    projection = plan_projection(principal, run)
    found = standings(Obligation.objects.filter(tenant_id=run.tenant_id, run=run).defer("input"))
    return {**projection, "entries": [_shown(entry, found[entry["effectId"]]) for entry in projection["entries"]]}


def _shown(entry: Mapping[str, Any], standing: Standing) -> dict[str, Any]:
    waits = entry["state"] == ObligationState.READY and any(hold["scope"] == "manual" for hold in entry["heldBy"])
    word = PLAN_WAITS if waits else standing.word
    return {**entry, "shown": word, "because": standing.because, "maybeApplied": standing.maybe_applied}


def _standing(entry: Obligation, last: Attempt | None, maybe_applied: int) -> Standing:
    because = _because(entry, last)
    if entry.state != ObligationState.FAILED or not maybe_applied:
        return Standing(entry.state, because, maybe_applied)
    earlier = "; an earlier attempt may have taken effect" if last and last.outcome == AttemptOutcome.FAILED else ""
    return Standing(EFFECT_UNKNOWN, because + earlier, maybe_applied)


def _because(entry: Obligation, last: Attempt | None) -> str:
    """The recorded reason; where attempts ran out, what the last one tells of why."""
    if entry.reason != Reason.RETRIES_EXHAUSTED or last is None:
        return phrase(entry.reason) if entry.reason else ""
    if last.http_status and last.http_status // 100 == CLIENT_ERROR and last.outcome == AttemptOutcome.FAILED:
        return f"definitely refused by the other system (HTTP {last.http_status})"
    never_sent = NEVER_SENT.get(last.error_class) if last.outcome == AttemptOutcome.FAILED else None
    if never_sent and entry.attempts == 1:
        return f"never sent: {never_sent}"
    tried = f"exhausted after {entry.attempts} attempt{'' if entry.attempts == 1 else 's'}"
    return f"{tried}, the last never sent: {never_sent}" if never_sent else tried


def _last_attempts(entries: Sequence[Obligation]) -> dict[object, Attempt]:
    newest = Attempt.objects.filter(obligation__in=[entry.pk for entry in entries]).order_by("obligation", "-number")
    return {attempt.obligation_id: attempt for attempt in newest.distinct("obligation")}
