"""From recorded facts to a frozen plan, or to a mint that failed and says why (CMP-111, 112, 301 … 306, 310)."""

import pytest

from audit.errors import ValidationFailed
from compensation.domain.canonical import digest
from compensation.domain.identity import effect_id
from compensation.domain.plan import plan_digest
from compensation.models import PlanVersion, RunEvent
from compensation.operations import acts
from compensation.operations.frozen import entry_document
from tests.support.definitions import node
from tests.support.stage import Stage, committed, failed

UNRESOLVED = "${nodes.ghost.output.id}"


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.register("undo")
    return stage


def test_cmp_301_requested_follows_the_plan_and_precedes_every_inverse_once(ready: Stage) -> None:
    ready.chain("a", "b")
    run = ready.fail("a", "b")
    ready.work()
    requested = RunEvent.objects.get(run=run, type="compensation.requested")
    started = RunEvent.objects.get(run=run, type="compensation.started")
    assert requested.sequence < started.sequence
    first = ready.attempts(run, "b")[0]
    assert ready.plan(run).requested_at <= requested.at <= first.started_at
    assert ready.events(run).count("requested") == ready.events(run).count("started") == 1


def test_cmp_302_bounds_freeze_per_field(ready: Stage) -> None:
    """The node's own, else the policy's, else the node type's, else the defaults; each field by itself."""
    ready.register("bare", retry=None, timeoutMs=None)
    ready.register("typed", retry={"maxAttempts": 7, "backoffMs": 70}, timeoutMs=7_000)
    own = node("own", "typed", retry={"maxAttempts": 9, "backoffMs": 0})
    ready.workflow([own, node("typed", "typed"), node("bare", "bare")], policy={"timeoutMs": 8_000})
    run = ready.fail("own", "typed", "bare")
    bounds = {each.node_id: (each.max_attempts, each.backoff_ms, each.timeout_ms) for each in ready.entries(run)}
    assert bounds == {"own": (9, 0, 8_000), "typed": (7, 70, 8_000), "bare": (3, 500, 8_000)}


def test_cmp_302_310_everything_an_obligation_is_freezes_with_it(ready: Stage) -> None:
    ready.chain("a", "b", "c", policy={"approvalScope": "all"})
    run = ready.fail("a", "b", "c")
    ready.register("undo", timeoutMs=1)
    entry = ready.entry(run, "b")
    tenant = ready.home.tenant.slug
    assert (entry.position, entry.ordinal, entry.compensation_ordinal) == (2, 2, 2)
    assert entry.effect_id == effect_id(tenant, str(run.pk), "b:1", 2, "1")
    assert entry.idempotency_key == entry.effect_id
    assert entry.input == {"id": "b-1"}
    assert entry.node_type_version is not None
    assert (entry.node_type_version.number, entry.timeout_ms) == (1, 3_000)
    assert (entry.requires_approval, entry.waive_requires_approval, entry.quorum) == (True, True, 1)
    assert entry.predecessors == [ready.entry(run, "c").effect_id]


@pytest.mark.parametrize(
    ("declared", "of_type", "scope", "runs", "waives"),
    [
        ({}, False, "declared", False, False),
        ({"requiresApproval": True}, False, "declared", True, True),
        ({}, True, "declared", True, False),
        ({"requiresApproval": True, "waiveRequiresApproval": False}, False, "declared", True, False),
        ({"waiveRequiresApproval": True}, False, "declared", False, True),
        ({"requiresApproval": False, "waiveRequiresApproval": False}, False, "all", True, True),
    ],
)
def test_cmp_303_effective_approval(
    stage: Stage, *, declared: dict[str, bool], of_type: bool, scope: str, runs: bool, waives: bool
) -> None:
    stage.register("undo", requiresApproval=of_type)
    stage.chain("a", policy={"approvalScope": scope}, **declared)
    entry = stage.entry(stage.fail("a"), "a")
    assert (entry.requires_approval, entry.waive_requires_approval) == (runs, waives)


def test_cmp_306_digests_cover_the_entries_in_order(ready: Stage) -> None:
    ready.chain("a", "b")
    run = ready.fail("a", "b")
    entries = ready.entries(run)
    for entry in entries:
        assert entry.digest == digest(entry_document(entry))
    version = PlanVersion.objects.get(plan=ready.plan(run))
    assert (version.number, version.by, version.change) == (1, "", None)
    assert ready.plan(run).digest == version.digest == plan_digest(each.digest for each in entries)


def test_cmp_111_references_resolve_once_from_recorded_facts(ready: Stage) -> None:
    mapping = {"own": "${nodes.b.output.id}", "other": "${nodes.a.output.id}", "text": "order ${inputs.order}!",
               "nested": [{"n": "${inputs.amount}"}], "none": "${nodes.a.output.none}"}  # fmt: skip
    variables = [{"name": "order", "type": "string", "required": True}, {"name": "amount", "type": "number"}]
    nodes = [node("a", "undo"), node("b", "undo", inputMapping=mapping)]
    ready.workflow(nodes, variables=variables)
    run = ready.begin(order="${inputs.amount}", amount=7)
    first, second = (
        committed("a", factId=f"a{n}", logicalInvocationId=f"a:{n}", output={"id": n, "none": None}) for n in (1, 2)
    )
    ready.report(run, first, committed("b"), second, failed("end"))
    expected = {"own": "b-1", "other": 1, "text": "order ${inputs.amount}!", "nested": [{"n": 7}], "none": None}
    assert ready.entry(run, "b").input == expected


@pytest.mark.parametrize(
    ("disposition", "status", "events"),
    [
        ("record-outcome", "failed", ["requested", "failed"]),
        ("manual-intervention", "manual", ["requested", "failed", "manual_intervention_required"]),
    ],
)
def test_cmp_112_a_reference_that_does_not_resolve_fails_the_mint(
    ready: Stage, disposition: str, status: str, events: list[str]
) -> None:
    nodes = [node("a", "undo", inputMapping={"id": UNRESOLVED}), node("b", "undo"), node("ghost")]
    ready.workflow(nodes, policy={"exhaustedDisposition": disposition})
    run = ready.fail("a", "b")
    failure = ready.plan(run).mint_failure
    assert failure is not None
    assert (failure["reference"], failure["nodeId"]) == (UNRESOLVED, "a")
    assert ready.entries(run) == []
    assert (ready.rollup(run), ready.events(run)) == (status, events)
    assert ready.payloads(run, "compensation.failed")[0]["reason"] == "dead-lettered"
    assert len(ready.payloads(run, "run.dead_lettered")) == 1
    assert ("dead_letter", "dead-lettered") in ready.attention(run)
    assert ready.work() == 0


def test_cmp_112_retry_mints_again_from_a_late_fact_under_the_same_compensation_id(ready: Stage) -> None:
    nodes = [node("a", "undo", inputMapping={"id": UNRESOLVED}), node("ghost", "undo")]
    ready.workflow(nodes, policy={"exhaustedDisposition": "manual-intervention"})
    run = ready.fail("a")
    plan = ready.plan(run)
    ready.report(run, committed("ghost"))
    acts.retry(actor=ready.home.operator, run_id=run.pk, seen=acts.Seen(plan_version=1), effect_id=None)
    assert (ready.plan(run).pk, ready.plan(run).mint_failure) == (plan.pk, None)
    assert ready.entry(run, "a").input == {"id": "ghost-1"}
    assert ready.attention(run) == set(), "the late commit is in the plan now"
    ready.work()
    assert ready.rollup(run) == "completed"
    assert ready.effects(run) == {"ghost": 1, "a": 1}
    assert ready.events(run) == ["requested", "failed", "manual_intervention_required", "started", "completed"]


def test_cmp_112_a_mint_that_fails_again_is_told_once(ready: Stage) -> None:
    ready.workflow([node("a", "undo", inputMapping={"id": UNRESOLVED}), node("ghost")])
    run = ready.fail("a")
    acts.retry(actor=ready.home.operator, run_id=run.pk, seen=acts.Seen(plan_version=1), effect_id=None)
    assert ready.events(run) == ["requested", "failed"]
    assert len(ready.payloads(run, "run.dead_lettered")) == 1
    assert ready.rollup(run) == "failed"
    assert ("dead_letter", "dead-lettered") in ready.attention(run)


def test_cmp_112_only_a_failed_mint_is_retried_as_a_whole(ready: Stage) -> None:
    ready.chain("a")
    run = ready.fail("a")
    with pytest.raises(ValidationFailed):
        acts.retry(actor=ready.home.operator, run_id=run.pk, seen=acts.Seen(plan_version=1), effect_id=None)
