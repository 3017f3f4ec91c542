"""Asking for what is another tenant's: a line in the host's security log, and nothing in that tenant (CMP-606)."""

from collections.abc import Mapping
from typing import Any, Final

import structlog
from rest_framework.request import Request

from approvals.models import Interrupt
from audit.principals import Principal
from compensation.models import Run
from compensation.queries.access import as_uuid

log = structlog.get_logger("security")

NAMED_BY: Final[Mapping[str, type[Run] | type[Interrupt]]] = {"run_id": Run, "interrupt_id": Interrupt}


def note_crossing(request: Request, named: Mapping[str, Any]) -> None:
    """Called for every 404: the look-up costs the same whether the id is foreign or made up."""
    principal = request.auth
    if not isinstance(principal, Principal):
        return
    for parameter, model in NAMED_BY.items():
        key = as_uuid(named.get(parameter, ""))
        if key and model.objects.exclude(tenant=principal.tenant).filter(pk=key).exists():
            log.warning("cross-tenant", principal=principal.label, tenant=principal.tenant.slug, path=request.path)
