from django.http import HttpResponse
from django.views.decorators.http import require_safe

from compensation.domain.workflow import WorkflowSpec
from compensation.queries.access import visible_workflows
from compensation.queries.paging import page
from compensation.queries.registry import find_workflow, workflow_wire, workflow_wires
from compensation.web.pages import Here, tenant_page
from compensation.web.policies import policy_in_words


@require_safe
@tenant_page
def workflows(here: Here) -> HttpResponse:
    cursor = here.request.GET.get("cursor", "")
    found = page(visible_workflows(here.principal), cursor=cursor, order="-id")
    return here.render(
        "definitions/workflows.html",
        section="workflows",
        workflows=workflow_wires(found.rows),
        next_cursor=found.next_cursor,
        paged=bool(cursor),
    )


@require_safe
@tenant_page
def workflow(here: Here, workflow_id: str) -> HttpResponse:
    """One version: the policy in words, the steps with their inverses, the document as registered."""
    asked = here.request.GET.get("version", "")
    version = find_workflow(here.principal, workflow_id, int(asked) if asked.isdecimal() else None)
    spec = WorkflowSpec.from_document(version.document)
    return here.render(
        "definitions/workflow.html",
        section="workflows",
        workflow=workflow_wire(version),
        spec=spec,
        sentences=policy_in_words(spec.policy),
        versions=range(version.workflow.latest, 0, -1),
    )
