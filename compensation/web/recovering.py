"""How every act is asked for and answered: what was displayed goes back with it, and a loss is explained.

A view builds its `Dialog` afresh for each answer, so that what follows an error is what is there now, with the typed
reason kept and the quoted version and state renewed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django_htmx.http import trigger_client_event

from audit.errors import NotFound, RecourseError, ValidationFailed
from audit.principals import Principal
from compensation.models import Plan, Run, RunEvent
from compensation.operations.acts import MAX_JUSTIFICATION, MIN_JUSTIFICATION, ActResult, Seen
from compensation.queries.acts import Offer
from compensation.web.pages import Here
from compensation.web.people import names_of


class ActForm(forms.Form):
    """What an act needs. The limits are repeated by the operation, which alone decides."""

    plan_version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    state = forms.CharField(widget=forms.HiddenInput, required=False)
    justification = forms.CharField(max_length=MAX_JUSTIFICATION, required=False, widget=forms.Textarea)

    def seen(self) -> Seen:
        return Seen(plan_version=self.cleaned_data["plan_version"], state=self.cleaned_data["state"])


@dataclass(frozen=True, kw_only=True)
class Dialog:
    """An act about to be asked for: its ``consequence`` and its need of a ``second_person`` are read before typing."""

    title: str
    verb: str
    offer: Offer
    back: str
    consequence: Sequence[str]
    plan_version: int = 0
    state: str = ""
    second_person: str = ""
    danger: bool = False
    reason_required: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    form_class: type[ActForm] = ActForm

    def blank(self) -> ActForm:
        return self.form_class(initial={"plan_version": self.plan_version, "state": self.state})

    def renewed(self, typed: Mapping[str, Any]) -> ActForm:
        """The form again: what was typed stays, what was displayed is what is displayed now."""
        return self.form_class(initial={**typed, "plan_version": self.plan_version, "state": self.state})


Perform = Callable[[Any], ActResult | None]


def act(here: Here, run: Run, build: Callable[[], Dialog], perform: Perform) -> HttpResponseBase:
    """Show the dialog, or do what it asks. Every refusal leaves things as they were and says so in the dialog."""
    dialog = build()
    if here.request.method != "POST":
        return _shown(here, run, dialog, dialog.blank())
    form = dialog.form_class(here.request.POST)
    try:
        if not form.is_valid():
            raise ValidationFailed("The form is not complete; nothing was changed.", _problems(form))
        result = perform(form)
    except NotFound:
        raise
    except RecourseError as error:
        now = build()
        typed = {name: here.request.POST.get(name, "") for name in form.fields}
        return _shown(here, run, now, now.renewed(typed), error=error)
    return _done(here, dialog, result)


def effect_path(here: Here, name: str, run: Run, effect_id: str) -> str:
    return reverse(f"web:{name}", args=[here.tenant.slug, run.pk, effect_id])


def run_path(here: Here, run: Run) -> str:
    return reverse("web:run", args=[here.tenant.slug, run.pk])


def plan_of(principal: Principal, run: Run) -> Plan | None:
    return Plan.objects.filter(tenant=principal.tenant, run=run).first()


def the_offer(offers: Sequence[Offer], act: str) -> Offer:
    """The offer of this act; a run without a plan offers none of the plan's acts."""
    return next((offer for offer in offers if offer.act == act), Offer(act=act, why_not="This run has no plan."))


def _shown(here: Here, run: Run, dialog: Dialog, form: ActForm, *, error: RecourseError | None = None) -> HttpResponse:
    return here.render(
        "recover/page.html",
        part="recover/_form.html",
        status=error.status if error else 200,
        section="runs",
        dialog=dialog,
        form=form,
        error=error,
        last=_last_decision(run) if error else None,
        run_id=run.pk,
        least=MIN_JUSTIFICATION,
    )


def _done(here: Here, dialog: Dialog, result: ActResult | None) -> HttpResponseBase:
    said = _said(dialog, result)
    if here.wants_part:
        return trigger_client_event(
            here.render("recover/_done.html", part="recover/_done.html", dialog=dialog, said=said, result=result),
            "recourse:changed",
        )
    messages.success(here.request, said)
    return redirect(dialog.back)


def _said(dialog: Dialog, result: ActResult | None) -> str:
    decision = f" It is decision {result.decision.seq} of the record." if result and result.decision else ""
    if result and result.interrupt:
        return f"{dialog.title}: asked. Another person must approve it first; until then nothing changes.{decision}"
    return f"{dialog.title}: done.{decision}"


def _last_decision(run: Run) -> dict[str, Any] | None:
    """Who did what last on this run, for whoever came second."""
    allowed = RunEvent.objects.filter(type="authorization.decided", payload__allowed=True)
    event = allowed.filter(tenant_id=run.tenant_id, run=run).order_by("-sequence").first()
    if event is None:
        return None
    names = names_of([event.payload["principal"]])
    return {"who": names.get(event.payload["principal"], ""), "action": event.payload["action"], "at": event.at}


def _problems(form: forms.Form) -> list[dict[str, str]]:
    return [
        {"pointer": f"/{name}", "message": " ".join(str(message) for message in messages_)}
        for name, messages_ in form.errors.items()
    ]
