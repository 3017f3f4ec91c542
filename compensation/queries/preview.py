"""What an operator-request would mint now; nothing is stored (CMP-201)."""

from typing import Any

from compensation.domain.plan import MintedEntry, MintedPlan, MintFailure, entry_document
from compensation.models import Plan, Run
from compensation.operations import minting
from compensation.queries.acts import why_not_start


def preview(run: Run, *, with_inputs: bool) -> dict[str, Any]:
    """``{runId, wouldStart, whyNot, entries, …}``; inputs only for those who may see them.

    ``digest`` is the plan's digest if it were minted now: facts that arrive meanwhile change it.
    """
    plan = Plan.objects.filter(tenant_id=run.tenant_id, run=run).first()
    why_not = why_not_start(run, plan)
    minted = None if plan is not None else minting.compute(run)
    return {
        "runId": str(run.pk),
        "wouldStart": why_not is None,
        "whyNot": why_not,
        **_shown(minted, with_inputs=with_inputs),
    }


def _shown(minted: MintedPlan | MintFailure | None, *, with_inputs: bool) -> dict[str, Any]:
    if isinstance(minted, MintedPlan):
        return {
            "orderingModel": minted.ordering_model.value,
            "digest": minted.digest,
            "mintFailure": None,
            "entries": [_entry(entry, with_input=with_inputs) for entry in minted.entries],
        }
    failure = minted.to_wire() if isinstance(minted, MintFailure) else None
    return {"orderingModel": None, "digest": None, "mintFailure": failure, "entries": []}


def _entry(entry: MintedEntry, *, with_input: bool) -> dict[str, Any]:
    shown = {**entry_document(entry), "digest": entry.digest, "irreversible": entry.irreversible}
    return shown if with_input else {name: value for name, value in shown.items() if name != "input"}
