from django.http import HttpResponse
from django.views.decorators.http import require_safe

from audit import authority
from audit.errors import Forbidden
from compensation.queries.access import visible_node_types
from compensation.queries.paging import page
from compensation.queries.registry import find_node_type, node_type_wire, node_type_wires
from compensation.web.pages import Here, tenant_page


@require_safe
@tenant_page
def node_types(here: Here) -> HttpResponse:
    """The registry, with what is on hold and whose breaker is open."""
    _require_registry(here)
    cursor = here.request.GET.get("cursor", "")
    found = page(visible_node_types(here.principal), cursor=cursor, order="-id")
    return here.render(
        "definitions/node_types.html",
        section="node_types",
        node_types=node_type_wires(found.rows),
        may_hold=_may_hold(here),
        next_cursor=found.next_cursor,
        paged=bool(cursor),
    )


@require_safe
@tenant_page
def node_type(here: Here, node_type_id: str) -> HttpResponse:
    _require_registry(here)
    asked = here.request.GET.get("version", "")
    version = find_node_type(here.principal, node_type_id, int(asked) if asked.isdecimal() else None)
    return here.render(
        "definitions/node_type.html",
        section="node_types",
        node_type=node_type_wire(version),
        versions=range(version.node_type.latest, 0, -1),
        may_hold=_may_hold(here),
    )


def _may_hold(here: Here) -> bool:
    return authority.permits(here.principal, "hold", here.tenant)


def _require_registry(here: Here) -> None:
    """Those who may see a workflow or a plan only do not see the tenant's whole registry."""
    if not authority.permits(here.principal, "view", here.tenant):
        raise Forbidden("You may not see the whole tenant (view), which its node types need.")
