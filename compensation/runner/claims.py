"""The claim: due entries become attempts, durable before anything leaves the process (CMP-401).

Legality and mutual exclusion are in the SQL: only unheld work of unlocked runs is taken, once, under a fresh token.
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import connection

# An eligible node type is not held, its breaker lets one probe or everything through, and it has room.
ELIGIBLE: Final = """
    select t.id,
        case when t.breaker_until is not null then 1 else coalesce(t.max_concurrency, 1000000) end
            - coalesce(f.in_flight, 0) as room
    from compensation_nodetype t
    left join (
        select node_type_id, count(*) as in_flight from compensation_work where token is not null group by 1
    ) f on f.node_type_id = t.id
    where t.held_at is null and (t.breaker_until is null or t.breaker_until <= clock_timestamp())
"""

# Due, unleased, and nothing above it is held: neither its plan, its tenant nor a person's attention.
STARTABLE: Final = """
    from compensation_work w
    join eligible e on e.id = w.node_type_id and e.room > 0
    join compensation_plan p on p.tenant_id = w.tenant_id and p.run_id = w.run_id
    join audit_tenant n on n.id = w.tenant_id
    where w.token is null and w.due_at <= clock_timestamp()
        and (w.stale_at is null or w.stale_at > clock_timestamp())
        and p.held_at is null and not p.parent_paused and not p.terminated and n.held_at is null
        and not exists (
            select 1 from compensation_attention a
            where a.plan_id = p.id and a.kind = 'manual' and a.resolved_at is null
        )
"""

SOMETHING_DUE: Final = f"""
with eligible as ({ELIGIBLE})
select exists (select 1 {STARTABLE})
    or exists (
        select 1 from compensation_work
        where due_at <= clock_timestamp() and (token is not null or stale_at <= clock_timestamp())
    )
"""  # noqa: S608 - put together from constants

# Candidates under their locks. Whoever acts on a plan holds its run's lock, so what is locked here stays as it is …
LOCK: Final = f"""
with eligible as materialized ({ELIGIBLE}),
 ranked as materialized (
    select c.*, row_number() over (partition by c.node_type_id order by c.due_at) as place
    from (
        select w.obligation_id, w.node_type_id, w.due_at, e.room
        {STARTABLE}
        order by w.due_at
        limit %(limit)s * 2
    ) c
 )
select w.obligation_id
from ranked k
join compensation_work w on w.obligation_id = k.obligation_id
join compensation_run r on r.id = w.run_id
where k.place <= k.room and w.token is null
    and (%(only)s::uuid is null or w.obligation_id = %(only)s::uuid)
order by k.due_at
limit %(limit)s
for no key update of w, r skip locked
"""  # noqa: S608 - put together from constants

# … and is judged once more, as it is now and not as it was before it was locked, then leased and begun.
CLAIM: Final = f"""
with eligible as materialized ({ELIGIBLE}),
 due as materialized (
    select w.obligation_id, w.kind, w.run_id
    {STARTABLE}
        and w.obligation_id = any(%(locked)s)
 ),
 leased as (
    update compensation_work w
    set token = gen_random_uuid(),
        due_at = clock_timestamp() + make_interval(secs => (o.timeout_ms + %(margin)s) / 1000.0)
    from due, compensation_obligation o
    where w.obligation_id = due.obligation_id and o.id = due.obligation_id
    returning w.obligation_id, w.token, w.kind, w.run_id
 ),
 begun as (
    update compensation_obligation o
    set state = 'running', attempts = o.attempts + 1, spent = o.spent + 1, next_attempt_at = null
    from leased l
    where l.kind = 'attempt' and o.id = l.obligation_id
    returning o.id, o.tenant_id, o.plan_id, o.run_id, o.attempts, o.idempotency_key, o.node_type_version_id,
        o.timeout_ms, l.token
 ),
 attempts as (
    insert into compensation_attempt
        (id, tenant_id, obligation_id, number, worker, idempotency_key, node_type_version_id, started_at, deadline_at,
         error_class, clocks)
    select token, tenant_id, id, attempts, %(worker)s, idempotency_key, node_type_version_id, clock_timestamp(),
        clock_timestamp() + make_interval(secs => timeout_ms / 1000.0), '', '{{}}'
    from begun
 ),
 started as (
    update compensation_plan p set started_at = clock_timestamp()
    from (select distinct plan_id from begun) b
    where p.id = b.plan_id and p.started_at is null
    returning p.id, p.tenant_id, p.run_id, p.ordering_model, p.plan_version
 ),
 told as (
    update compensation_run r set last_sequence = r.last_sequence + 1, compensation_status = 'running'
    from started s where r.id = s.run_id
    returning r.id, r.last_sequence
 ),
 events as (
    insert into compensation_runevent (id, tenant_id, run_id, sequence, type, payload, node_id, causation_id, at)
    select gen_random_uuid(), s.tenant_id, s.run_id, t.last_sequence, 'compensation.started',
        jsonb_build_object(
            'compensationId', s.id::text, 'orderingModel', s.ordering_model, 'planVersion', s.plan_version
        ), '', '', clock_timestamp()
    from started s join told t on t.id = s.run_id
 )
select l.obligation_id, l.token, l.kind, l.run_id, o.tenant_id, o.idempotency_key, o.input, o.node_type_version_id,
    o.timeout_ms, n.slug, n.egress_allow
from leased l
join compensation_obligation o on o.id = l.obligation_id
join audit_tenant n on n.id = o.tenant_id
"""  # noqa: S608 - put together from constants


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """One call to make: an attempt, or a readback of an unknown effect. ``token`` fences its record."""

    obligation_id: uuid.UUID
    token: uuid.UUID
    kind: str
    run_id: uuid.UUID
    tenant_id: int
    key: str
    input: str
    node_type_version_id: uuid.UUID
    timeout_ms: int
    tenant: str
    egress_allow: tuple[str, ...]


def claim(*, limit: int, worker: str, only: uuid.UUID | None = None) -> list[Claimed]:
    """Claim up to ``limit`` due entries in the caller's transaction; their attempts are durable once it commits.

    ``only`` narrows it to one entry. Raises what the database raises when a wall refuses an attempt.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK, {"limit": limit, "only": only})
        locked = [row[0] for row in cursor.fetchall()]
    return begin(locked, worker=worker) if locked else []


def begin(locked: Sequence[uuid.UUID], *, worker: str) -> list[Claimed]:
    """Begin those of the locked entries that may still start: a hold may have come in before they were locked."""
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, {"locked": list(locked), "margin": settings.LEASE_MARGIN_MS, "worker": worker})
        return [_claimed(row) for row in cursor.fetchall()]


def next_due_in_ms() -> float | None:
    """Milliseconds until the next work comes due, None when none will. What is due already is held or locked."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select extract(epoch from min(due_at) - clock_timestamp()) * 1000 from compensation_work"
            " where token is null and due_at > clock_timestamp()"
        )
        row = cursor.fetchone()
    return None if row is None or row[0] is None else float(row[0])


def something_is_due() -> bool:
    """Whether a claim or a recovery would find anything now."""
    with connection.cursor() as cursor:
        cursor.execute(SOMETHING_DUE)
        row = cursor.fetchone()
    return bool(row and row[0])


def _claimed(row: tuple[Any, ...]) -> Claimed:
    *fields, allow = row
    names = (
        "obligation_id",
        "token",
        "kind",
        "run_id",
        "tenant_id",
        "key",
        "input",
        "node_type_version_id",
        "timeout_ms",
        "tenant",
    )
    return Claimed(**dict(zip(names, fields, strict=True)), egress_allow=tuple(json.loads(allow)))
