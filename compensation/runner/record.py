"""Recording what came of calls: whole waves of successes in SQL, everything else one by one.

The database fences: only the holder of the work row's token records, so a worker whose lease was taken over cannot
(CMP-404), and a completed entry is never touched again (CMP-312).
"""

import json
import uuid
from collections.abc import Sequence
from typing import Any, Final

from django.db import connection

from approvals.models import InterruptState
from compensation.connectors.http import CallResult
from compensation.domain.states import OrderingModel
from compensation.models import Obligation, Plan
from compensation.operations import asking
from compensation.operations.acting import lock_run
from compensation.operations.advance import advance
from compensation.runner.results import Done

SUCCESSES: Final = """
with done as materialized (
    select * from jsonb_to_recordset(%(done)s::jsonb)
        as t(id uuid, token uuid, status int, receipt jsonb, clocks jsonb)
 ),
 released as (
    delete from compensation_work w using done d
    where w.obligation_id = d.id and w.token = d.token
    returning d.id, d.token, d.status, d.receipt, d.clocks, w.node_type_id
 ),
 completed as (
    update compensation_obligation o
    set state = 'completed', outcome = 'completed', reason = '', finished_at = clock_timestamp(), receipt = r.receipt,
        crash_streak = 0
    from released r where o.id = r.id
    returning o.id, o.plan_id
 ),
 recorded as (
    update compensation_attempt a
    set finished_at = clock_timestamp(), outcome = 'succeeded', http_status = r.status, receipt = r.receipt,
        clocks = r.clocks
    from released r where a.id = r.token
 ),
 healthy as (
    update compensation_nodetype t set failures = 0, breaker_until = null
    from (
        select id from compensation_nodetype
        where id in (select node_type_id from released) and (failures > 0 or breaker_until is not null)
        order by id for no key update
    ) r
    where t.id = r.id
 )
select c.id, c.plan_id, p.ordering_model,
    exists (select 1 from approvals_interrupt i where i.subject_id = c.id and i.state = 'open') as questioned
from completed c join compensation_plan p on p.id = c.plan_id
"""

# The plain case of `advance`: one at a time, and the next entry just waits for its turn to be called.
OPEN_NEXT: Final = """
with next as materialized (
    select distinct on (o.plan_id) o.plan_id, o.id, o.tenant_id, o.run_id, v.node_type_id,
        o.state = 'waiting' and not o.requires_approval and v.kind = 'http' and o.attempts = 0 as plain
    from compensation_obligation o
    join compensation_nodetypeversion v on v.id = o.node_type_version_id
    join compensation_plan p on p.id = o.plan_id
    where o.plan_id = any(%(plans)s) and o.outcome is null and not p.terminated and not p.parent_paused
    order by o.plan_id, o.position
 ),
 opened as (
    update compensation_obligation o set state = 'ready' from next n where n.plain and o.id = n.id returning o.id
 ),
 queued as (
    insert into compensation_work (obligation_id, tenant_id, run_id, node_type_id, kind, due_at)
    select n.id, n.tenant_id, n.run_id, n.node_type_id, 'attempt', clock_timestamp() from next n where n.plain
 )
select plan_id from next where plain
"""

# The plain case of closing: nothing remains and nobody is called for.
CLOSE: Final = """
with closed as (
    update compensation_plan p set closed_at = clock_timestamp()
    where p.id = any(%(plans)s) and not p.terminated and p.closed_at is null
        and not exists (select 1 from compensation_obligation o where o.plan_id = p.id and o.outcome is null)
        and not exists (
            select 1 from compensation_attention a
            where a.plan_id = p.id and a.kind = 'manual' and a.resolved_at is null
        )
    returning p.id, p.tenant_id, p.run_id, p.ordering_model, p.plan_version,
        not exists (select 1 from compensation_obligation o where o.plan_id = p.id and o.state <> 'completed') as whole
 ),
 told as (
    update compensation_run r
    set compensation_status = case when c.whole then 'completed' else 'partial' end,
        last_sequence = r.last_sequence + c.whole::int
    from closed c where r.id = c.run_id
    returning r.id, r.last_sequence
 ),
 events as (
    insert into compensation_runevent (id, tenant_id, run_id, sequence, type, payload, node_id, causation_id, at)
    select gen_random_uuid(), c.tenant_id, c.run_id, t.last_sequence, 'compensation.completed',
        jsonb_build_object(
            'compensationId', c.id::text, 'orderingModel', c.ordering_model, 'planVersion', c.plan_version
        ), '', '', clock_timestamp()
    from closed c join told t on t.id = c.run_id where c.whole
 )
select id from closed
"""


def lock_runs(run_ids: Sequence[uuid.UUID]) -> None:
    """Lock runs in one order, so that two recorders never wait for each other in a circle."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select id from compensation_run where id = any(%s) order by id for no key update", [list(run_ids)]
        )


def record_successes(done: Sequence[Done]) -> None:
    """Complete a wave of entries and bring their plans forward. The caller's transaction holds nothing else yet."""
    lock_runs(sorted({item.claimed.run_id for item in done}))
    with connection.cursor() as cursor:
        cursor.execute(SUCCESSES, {"done": json.dumps([_row(item) for item in done])})
        completed = cursor.fetchall()
    _supersede_questions([row[0] for row in completed if row[3]])
    sequential = {row[1] for row in completed if row[2] == OrderingModel.REVERSE_COMPLETION}
    advanced = _plans_moved(OPEN_NEXT, sequential)
    closed = _plans_moved(CLOSE, sequential - advanced)
    for plan_id in {row[1] for row in completed} - advanced - closed:
        _advance(plan_id)


def _row(item: Done) -> dict[str, Any]:
    if not isinstance(item.result, CallResult):
        raise TypeError("only an attempt succeeds")
    return {
        "id": str(item.claimed.obligation_id),
        "token": str(item.claimed.token),
        "status": item.result.status,
        "receipt": item.result.receipt,
        "clocks": item.result.clocks(),
    }


def _plans_moved(statement: str, plans: set[uuid.UUID]) -> set[uuid.UUID]:
    """Run a plain case on these plans and return those it was the case for."""
    if not plans:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(statement, {"plans": list(plans)})
        return {row[0] for row in cursor.fetchall()}


def _advance(plan_id: uuid.UUID) -> None:
    plan = Plan.objects.get(pk=plan_id)
    run = lock_run(plan.tenant_id, plan.run_id)
    advance(run, plan)


def _supersede_questions(entry_ids: Sequence[uuid.UUID]) -> None:
    """A question whether to waive or replace an entry is moot once it is done."""
    for entry in Obligation.objects.filter(pk__in=entry_ids) if entry_ids else ():
        asking.withdraw(lock_run(entry.tenant_id, entry.run_id), [entry], InterruptState.SUPERSEDED)
