import uuid

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from compensation.models import RunEvent
from compensation.queries.access import require_run
from compensation.queries.events import event_wire
from compensation.queries.paging import page
from compensation.web.pages import Here, tenant_page
from compensation.web.people import names_of


@require_safe
@tenant_page
def events(here: Here, run_id: uuid.UUID) -> HttpResponse:
    """The whole log of a run, newest first, a page at a time (CMP-502)."""
    run = require_run(here.principal, run_id)
    cursor = here.request.GET.get("cursor", "")
    found = page(RunEvent.objects.filter(tenant=here.tenant, run=run), cursor=cursor, order="-sequence")
    return here.render(
        "run/events.html",
        section="runs",
        run_id=str(run.pk),
        events=[event_wire(event) for event in found.rows],
        names=names_of(event.payload.get("principal") for event in found.rows),
        next_cursor=found.next_cursor,
        paged=bool(cursor),
    )
