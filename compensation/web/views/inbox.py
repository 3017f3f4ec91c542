from typing import Final

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from approvals.models import InterruptState
from compensation.models import Obligation
from compensation.queries.access import visible_interrupts
from compensation.queries.interrupts import interrupt_wires
from compensation.web.pages import Here, live_page, tenant_page
from compensation.web.people import names_of
from compensation.web.standing import standings
from compensation.web.summaries import summaries

OTHERS_SHOWN: Final = 50


@require_safe
@tenant_page
def inbox(here: Here) -> HttpResponse:
    """What needs this person, most urgent first; then the questions that somebody else must answer, and why."""
    approvals = interrupt_wires(here.principal, list(here.inbox.approvals))
    others = _others(here, {each["interruptId"] for each in approvals})
    return live_page(
        here,
        "inbox/page.html",
        part="inbox/_live.html",
        body="inbox/_list.html",
        section="inbox",
        inbox=here.inbox,
        standing=standings(_entries(here)),
        approvals=approvals,
        others=others,
        about=summaries(here.tenant, [*approvals, *others]),
        names=names_of(each["requestedBy"] for each in [*approvals, *others]),
    )


def _entries(here: Here) -> list[Obligation]:
    calls = [*(held.entry for held in here.inbox.held), *(call.obligation for call in here.inbox.dead_letters)]
    return [entry for entry in calls if entry is not None]


def _others(here: Here, mine: set[str]) -> list[dict[str, object]]:
    open_ones = visible_interrupts(here.principal).filter(state=InterruptState.OPEN).exclude(pk__in=mine)
    return interrupt_wires(here.principal, list(open_ones.order_by("-id")[:OTHERS_SHOWN]))
