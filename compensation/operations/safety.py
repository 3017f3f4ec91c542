"""What makes it safe to present an entry again (CMP-405)."""

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Min, QuerySet
from django.utils import timezone

from compensation.domain.node_type import NodeTypeSpec
from compensation.domain.retry import Safety
from compensation.domain.states import AttemptOutcome
from compensation.models import Attempt, Obligation

PROVEN_NOT_APPLIED = ["not_applied", "not_applied"]


def spec_of_entry(entry: Obligation) -> NodeTypeSpec:
    """The frozen node type version of an entry that runs something."""
    if entry.node_type_version is None:
        raise LookupError("an irreversible entry is never called")
    return NodeTypeSpec.from_document(entry.node_type_version.document)


def safety_of(entry: Obligation) -> Safety:
    """Whether the downstream honours keys and still remembers this entry's, counted from its first send."""
    spec = spec_of_entry(entry)
    age = timezone.now() - _first_sent(entry)
    return Safety(
        honours_keys=spec.idempotency.honoured,
        key_age_hours=age / timedelta(hours=1),
        key_lifetime_hours=spec.key_lifetime_hours,
        has_readback=spec.readback is not None,
    )


def key_forgotten_at(entry: Obligation) -> datetime | None:
    """When the downstream may forget the key of an effect that may have been applied, in the database's time.

    None when nothing was sent that could have been, or when that time has passed and a person chose to go on.
    """
    spec = spec_of_entry(entry)
    if not entry.attempts or not spec.idempotency.honoured or proven_not_applied(entry):
        return None
    forgotten = _first_sent(entry) + timedelta(hours=spec.key_lifetime_hours)
    return forgotten if forgotten > timezone.now() else None


def _first_sent(entry: Obligation) -> datetime:
    """When an attempt under the present key was first made; now, if none was."""
    sent = entry.attempt_rows.filter(idempotency_key=entry.idempotency_key).aggregate(first=Min("started_at"))
    return sent["first"] or timezone.now()


def readback_first(entry: Obligation) -> bool:
    """Whether an effect that may have been applied must be read back before the entry is presented again."""
    safety = safety_of(entry)
    return safety.has_readback and not safety.key_holds and not proven_not_applied(entry)


def proven_not_applied(entry: Obligation, *, before: int | None = None) -> bool:
    """Whether every attempt so far (below number ``before``) surely had no effect: refused, never sent, or twice read
    back as not applied."""
    attempts = entry.attempt_rows.all() if before is None else entry.attempt_rows.filter(number__lt=before)
    return not _maybe_applied(attempts)


def attempts_maybe_applied(entries: Iterable[Obligation]) -> dict[uuid.UUID, int]:
    """How many attempts may have taken effect, for each entry that has any such: two queries for any number of
    entries. The entries that are absent are those of `proven_not_applied`."""
    found: dict[uuid.UUID, int] = {}
    for attempt in _maybe_applied(Attempt.objects.filter(obligation__in=[entry.pk for entry in entries])):
        found[attempt.obligation_id] = found.get(attempt.obligation_id, 0) + 1
    return found


def _maybe_applied(attempts: QuerySet[Attempt]) -> list[Attempt]:
    return [attempt for attempt in attempts.prefetch_related("readbacks") if not _had_no_effect(attempt)]


def _had_no_effect(attempt: Attempt) -> bool:
    if attempt.outcome == AttemptOutcome.FAILED:
        return True
    readbacks = sorted(attempt.readbacks.all(), key=lambda readback: readback.number)
    return [readback.verdict for readback in readbacks[-2:]] == PROVEN_NOT_APPLIED
