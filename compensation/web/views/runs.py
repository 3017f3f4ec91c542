from django.http import HttpResponse
from django.views.decorators.http import require_safe

from compensation.domain.states import RollupStatus
from compensation.queries.access import visible_runs, visible_workflows
from compensation.queries.paging import page
from compensation.queries.snapshots import for_snapshots, run_snapshots
from compensation.web.pages import Here, live_page, tenant_page
from compensation.web.run_list import RunFilter, next_attempts
from compensation.web.words import RUN


@require_safe
@tenant_page
def runs(here: Here) -> HttpResponse:
    """Runs by the filter in the URL, newest first; status and rollup side by side, never one without the other."""
    wanted = RunFilter.of(here.request.GET)
    cursor = here.request.GET.get("cursor", "")
    found = page(for_snapshots(wanted.among(visible_runs(here.principal))), cursor=cursor)
    return live_page(
        here,
        "runs/page.html",
        part="runs/_live.html",
        body="runs/_rows.html",
        section="runs",
        wanted=wanted,
        runs=run_snapshots(found.rows),
        next_attempts=next_attempts(found.rows),
        next_cursor=found.next_cursor,
        paged=bool(cursor),
        statuses=RUN.keys(),
        rollups=[rollup.value for rollup in RollupStatus],
        workflows=visible_workflows(here.principal).order_by("workflow_id").values_list("workflow_id", flat=True)[:200],
    )
