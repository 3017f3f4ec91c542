"""Any order of facts, faults, calls, crashes, holds and acts on one run keeps what must always hold (CMP §3 … §6)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, ClassVar

from django.db.models.functions import Now
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from approvals.models import Answer, Interrupt
from audit.errors import RecourseError
from compensation.models import Obligation, Plan, Run, RunEvent, Work
from compensation.operations import acts, approving, asking, holds, runs
from compensation.operations.substitution import Replacement
from compensation.runner.recovery import recover_expired
from compensation.runner.results import Done
from tests.support.calls import hand_in, send, take
from tests.support.definitions import node, readback
from tests.support.sandbox import SandboxProcess
from tests.support.stage import WHY, Stage, committed, failed

NODES = ("plain", "asked", "reading", "blind")
PAIRS = (("plain", "asked"), ("plain", "reading"), ("asked", "blind"))
FAULTS = ("fail", "reject", "drop_before", "drop_after", "garbage")
NOT_HONOURED = {"header": "Idempotency-Key", "honoured": False}
entries = st.sampled_from(NODES)


class Unwinding(RuleBasedStateMachine):
    """One run, at the mercy of its reporter, its downstream, its workers and its operators."""

    sandbox: ClassVar[SandboxProcess]

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(self.sandbox)
        self.zombies: list[Done] = []

    @initialize(
        model=st.sampled_from(["reverse-completion", "dependency-graph"]),
        disposition=st.sampled_from(["record-outcome", "manual-intervention"]),
        on_cancel=st.sampled_from(["continue", "pause", "manual"]),
        first=st.lists(entries, unique=True, max_size=len(NODES)),
    )
    def begin(self, model: str, disposition: str, on_cancel: str, first: list[str]) -> None:
        stage = self.stage
        stage.register("undo")
        stage.register("other")
        stage.register("reads", idempotency=NOT_HONOURED, readback=readback(stage.sandbox.url), timeoutMs=400)
        stage.register("blind", idempotency=NOT_HONOURED)
        nodes = [
            node("plain", "undo"),
            node("asked", "undo", requiresApproval=True, waiveRequiresApproval=False),
            node("reading", "reads"),
            node("blind", "blind"),
        ]
        policy = {"orderingModel": model, "exhaustedDisposition": disposition, "onParentCancel": on_cancel}
        stage.workflow(nodes, pairs=PAIRS, policy=policy)
        self.run = stage.begin()
        for node_id in first:
            stage.report(self.run, committed(node_id))

    # -- the reporter and the run

    @rule(node_id=entries)
    def commit(self, node_id: str) -> None:
        self.stage.report(self.run, committed(node_id))

    @rule()
    def fail(self) -> None:
        self.stage.report(self.run, failed("end"))

    @rule()
    def cancel(self) -> None:
        with suppress(RecourseError):
            runs.cancel_run(actor=self.stage.home.operator, run_id=self.run.pk)

    # -- the downstream and the workers

    @rule(verb=st.sampled_from(["undo", "reads", "blind"]), mode=st.sampled_from(FAULTS))
    def fault(self, verb: str, mode: str) -> None:
        self.stage.fault(verb, mode, times=1)

    @rule()
    def refuse_credentials(self) -> None:
        self.stage.fault("undo", "reject", status=401, times=1)

    @rule(limit=st.integers(1, 3))
    def call(self, limit: int) -> None:
        hand_in(*send(*take(limit=limit)))

    @rule(sent=st.booleans())
    def crash(self, *, sent: bool) -> None:
        """A worker dies with a call in flight, before or after it left; another takes over."""
        orders = take(limit=1)
        if sent:
            self.zombies += send(*orders)
        Work.objects.filter(run=self.run, token__isnull=False).update(due_at=Now() - timedelta(seconds=1))
        recover_expired()

    @rule()
    def rise_from_the_dead(self) -> None:
        """A worker that lost its lease comes back with a result: it changes nothing."""
        before = self.stage.states(self.run)
        hand_in(*self.zombies)
        assert self.stage.states(self.run) == before
        self.zombies.clear()

    @rule()
    def let_time_pass(self) -> None:
        Work.objects.filter(run=self.run, token=None).update(due_at=Now())

    # -- people

    @rule(node_id=entries, act=st.sampled_from(["retry", "skip", "substitute"]))
    def act_on(self, node_id: str, act: str) -> None:
        entry = Obligation.objects.filter(run=self.run, node_id=node_id).first()
        if entry is None:
            return
        home, seen = self.stage.home, self.stage.seen(self.run, node_id)
        about: dict[str, Any] = {"run_id": self.run.pk, "effect_id": entry.effect_id, "seen": seen}
        choices: dict[str, Callable[[], Any]] = {
            "retry": lambda: acts.retry(actor=home.operator, **about),
            "skip": lambda: acts.skip(actor=home.lead, justification=WHY, **about),
            "substitute": lambda: acts.substitute(
                actor=home.lead, justification=WHY, replacement=Replacement(node_type_id="other"), **about
            ),
        }
        with suppress(RecourseError):
            choices[act]()

    @rule(answer=st.sampled_from(Answer))
    def answer(self, answer: Answer) -> None:
        """Nobody attests that an unknown effect was not applied: that word could be wrong."""
        found = Interrupt.objects.filter(context_id=self.run.pk, state="open").exclude(handler=asking.REPLACE_IT)
        for question in found:
            with suppress(RecourseError):
                self.stage.answer(question, answer)

    @rule()
    def let_questions_expire(self) -> None:
        Interrupt.objects.filter(context_id=self.run.pk, state="open").update(expires_at=Now())
        approving.expire_due()

    @rule(which=st.sampled_from(["pause", "resume", "release"]))
    def hold(self, which: str) -> None:
        home, run_id = self.stage.home, self.run.pk
        choices: dict[str, Callable[[], Any]] = {
            "pause": lambda: holds.pause_plan(actor=home.operator, run_id=run_id),
            "resume": lambda: holds.resume_plan(actor=home.operator, run_id=run_id),
            "release": lambda: holds.release_node_type(actor=home.lead, node_type_id="undo"),
        }
        with suppress(RecourseError):
            choices[which]()

    @rule(really=st.integers(0, 5))
    def terminate(self, really: int) -> None:
        if really == 0 and Plan.objects.filter(run=self.run).exists():
            with suppress(RecourseError):
                self.stage.terminate(self.run)

    # -- what always holds

    @invariant()
    def the_stored_rollup_is_the_derived_one(self) -> None:
        if hasattr(self, "run"):
            self.stage.rollup(self.run)

    @invariant()
    def the_log_has_no_gap_and_tells_the_plan_once(self) -> None:
        if not hasattr(self, "run"):
            return
        found = RunEvent.objects.filter(run=self.run).order_by("sequence").values_list("sequence", flat=True)
        assert list(found) == list(range(1, len(found) + 1))
        told = self.stage.events(self.run)
        assert all(told.count(kind) <= 1 for kind in ("requested", "started", "completed"))

    @invariant()
    def decisions_have_no_gap(self) -> None:
        seqs = [row.seq for row in self.stage.decisions()]
        assert seqs == list(range(1, len(seqs) + 1))

    @invariant()
    def each_obligation_has_at_most_one_effect_and_a_completed_one_exactly_one(self) -> None:
        for entry in Obligation.objects.filter(run=self._run_or_none()):
            keys = set(entry.attempt_rows.values_list("idempotency_key", flat=True))
            applied = sum(len(self.sandbox.effects(key=key)) for key in keys)
            assert applied <= 1, entry
            assert applied == 1 or entry.state != "completed", entry

    @invariant()
    def work_waits_exactly_for_what_is_queued(self) -> None:
        run = self._run_or_none()
        queued = set(Work.objects.filter(run=run).values_list("obligation_id", flat=True))
        states = dict(Obligation.objects.filter(run=run).values_list("pk", "state"))
        must = {entry for entry, state in states.items() if state in ("ready", "retry_scheduled", "running")}
        assert must <= queued
        assert all(states[entry] in ("ready", "retry_scheduled", "running", "uncertain") for entry in queued)

    def _run_or_none(self) -> Run | None:
        return getattr(self, "run", None)

    def teardown(self) -> None:
        """With the downstream well and people at hand, the plan ends or says what holds it."""
        if hasattr(self, "run"):
            self.sandbox.clear_faults()
            self._help()
            plan = Plan.objects.filter(run=self.run).first()
            ended = plan is None or plan.closed_at is not None
            assert ended or self.stage.rollup(self.run) == "manual", (self.stage.states(self.run), self.trouble())
        self.stage.close()

    def trouble(self) -> Any:
        """What a failure report needs: calls for a person and open questions."""
        found = Interrupt.objects.filter(context_id=self.run.pk).values_list("handler", "state", "node_key")
        return self.stage.attention(self.run), list(found)

    def _help(self) -> None:
        for _ in range(len(NODES) + 2):
            self.hold("resume")
            self.hold("release")
            self.let_time_pass()
            for node_id in NODES:
                self.act_on(node_id, "retry")
            self.answer(Answer.ACCEPT)
            self.stage.work()


def test_any_interleaving_keeps_the_invariants(db: None, downstream: SandboxProcess) -> None:
    Unwinding.sandbox = downstream
    run_state_machine_as_test(
        Unwinding,
        settings=settings(
            max_examples=15,
            stateful_step_count=18,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
