import hashlib
import uuid
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from approvals.models import Answer, Interrupt
from audit.errors import NotFound, RecourseError, ValidationFailed
from audit.models import User
from compensation.models import Obligation
from compensation.operations.approving import Reply, resolve_interrupt
from compensation.operations.asking import REPLACE_IT, RUN_IT, WAIVE_IT
from compensation.queries.access import require, require_run, visible_interrupts
from compensation.queries.interrupts import interrupt_wire
from compensation.queries.projection import attempt_wire, attempts_of
from compensation.web.pages import Here, tenant_page
from compensation.web.people import names_of
from compensation.web.standing import standing_plan
from compensation.web.summaries import actions_of, money, specs_of

MAX_FEEDBACK: Final = 4000
ATTEMPTS_SHOWN: Final = 20

WHAT_FOLLOWS: Final = {
    RUN_IT: {
        "accept": "exactly the action shown on this page runs, when its turn in the order comes",
        "reject": "it does not run: its outcome is “not undone”, for the reason “a person rejected it”, and the policy "
        "decides whether the rest goes on",
    },
    WAIVE_IT: {
        "accept": "what this page lists is left as it is, for ever",
        "reject": "nothing changes: the entries stay owed, and an operator can still undo them",
    },
    REPLACE_IT: {
        "accept": "the replacement shown on this page takes the place of the planned action, as a new plan version",
        "reject": "nothing changes: the planned action stays as it is",
    },
}


class ReplyForm(forms.Form):
    """An answer quotes the digest and the plan version that were displayed (CMP-602)."""

    action = forms.ChoiceField(choices=Answer.choices)
    digest = forms.CharField(max_length=64)
    plan_version = forms.IntegerField(min_value=1)
    feedback = forms.CharField(max_length=MAX_FEEDBACK, required=False)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def approval(here: Here, interrupt_id: uuid.UUID) -> HttpResponseBase:
    """One question: what exactly would run, who asked and why, what each answer does; and the answer."""
    interrupt = require(visible_interrupts(here.principal), interrupt_id)
    if here.request.method != "POST":
        return _shown(here, interrupt)
    try:
        answered = resolve_interrupt(actor=here.principal, interrupt_id=interrupt.pk, reply=_reply(here))
    except NotFound:
        raise
    except RecourseError as error:
        interrupt.refresh_from_db()
        return _shown(here, interrupt, error=error)
    messages.success(here.request, _said(answered))
    return redirect(here.request.path)


def _reply(here: Here) -> Reply:
    form = ReplyForm(here.request.POST)
    if not form.is_valid():
        problems = [{"pointer": f"/{name}", "message": str(texts[0])} for name, texts in form.errors.items()]
        raise ValidationFailed("The answer is not complete; nothing was decided.", problems)
    data: dict[str, Any] = form.cleaned_data
    return Reply(
        answer=Answer(data["action"]),
        digest=data["digest"],
        plan_version=data["plan_version"],
        feedback=data["feedback"],
    )


def _shown(here: Here, interrupt: Interrupt, *, error: RecourseError | None = None) -> HttpResponse:
    wire = interrupt_wire(here.principal, interrupt)
    plan = standing_plan(here.principal, require_run(here.principal, interrupt.context_id))
    owed = Obligation.objects.filter(tenant=here.tenant, pk=interrupt.subject_id).first()
    actions = actions_of(wire["artifact"])
    specs = specs_of(here.tenant, actions)
    return here.render(
        "approval/page.html",
        status=error.status if error else 200,
        section="inbox",
        question=wire,
        plan=plan,
        entry=next((each for each in plan["entries"] if owed and each["effectId"] == owed.effect_id), None),
        action=actions[0] if actions else None,
        money=money(actions[0], specs) if actions else "",
        attempts=_attempts(owed) if owed else [],
        recomputed=hashlib.sha256(interrupt.artifact.encode()).hexdigest(),
        follows=WHAT_FOLLOWS[interrupt.handler],
        excluded=[str(user) for user in User.objects.filter(pk__in=interrupt.excluded).order_by("username")],
        names=names_of([wire["requestedBy"], *(vote["principal"] for vote in wire["votes"])]),
        feedback=here.request.POST.get("feedback", ""),
        error=error,
    )


def _attempts(owed: Obligation) -> list[dict[str, Any]]:
    return [attempt_wire(each) for each in attempts_of(owed).order_by("-number")[:ATTEMPTS_SHOWN]]


def _said(interrupt: Interrupt) -> str:
    if interrupt.resolved_at is None:
        return "Your answer is recorded. More people must answer before it is decided."
    return f"Decided: {interrupt.state}. It is on record with the digest you were shown."
