"""What may happen to a run of the demo, and how often: an engine's day in a table."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from compensation.demo.documents import workflows

Ending = Literal["completes", "fails", "is-cancelled", "breaches-a-cap"]
Needs = Literal["", "approval", "person"]

# The one path whose calls are ever disturbed. No example workflow calls it, so a visitor's own runs never fail by it.
DISTURBED: Final = "/mail/recall"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """How one run goes: its first ``commits`` nodes commit, then it ends, and ``needs`` somebody or nobody.

    ``fault``: what the sandbox does to the one call of `DISTURBED` that follows. ``loses``: the node whose report
    lacks its output. ``afterwards``: the node that commits too late, or the cancel that meets the unwind.
    """

    name: str
    workflow: str
    commits: int
    ending: Ending
    needs: Needs = ""
    weight: int = 0
    fault: Mapping[str, Any] | None = None
    loses: str = ""
    commits_late: str = ""
    cancelled_while_unwinding: bool = False


ORDER: Final = "order-fulfilment"
TRIP: Final = "travel-booking"
PAYMENT: Final = "supplier-payment"
MAILING: Final = "customer-mailing"

SCENARIOS: Final = (
    Scenario(name="card-declined", workflow=ORDER, commits=1, ending="fails", weight=4),
    Scenario(name="ledger-down", workflow=ORDER, commits=4, ending="fails", needs="approval", weight=3),
    Scenario(name="trip-unpaid", workflow=TRIP, commits=4, ending="fails", weight=4),
    Scenario(
        name="recall-refused", workflow=MAILING, commits=2, ending="fails", needs="person", weight=1,
        fault={"mode": "reject", "status": 422},
    ),
    Scenario(
        name="recall-unanswered", workflow=MAILING, commits=2, ending="fails", needs="person", weight=1,
        fault={"mode": "drop_after"},
    ),
    Scenario(name="order-shipped", workflow=ORDER, commits=5, ending="completes", weight=6),
    Scenario(name="shipment-refused", workflow=ORDER, commits=2, ending="fails", needs="approval", weight=2),
    Scenario(name="order-withdrawn", workflow=ORDER, commits=1, ending="is-cancelled", weight=2),
    Scenario(name="mailing-withdrawn", workflow=MAILING, commits=2, ending="is-cancelled", weight=2),
    Scenario(name="budget-breached", workflow=TRIP, commits=3, ending="breaches-a-cap", weight=1),
    Scenario(name="trip-taken", workflow=TRIP, commits=6, ending="completes", weight=3),
    Scenario(name="tickets-refused", workflow=TRIP, commits=5, ending="fails", needs="approval", weight=1),
    Scenario(name="invoice-closed-twice", workflow=PAYMENT, commits=3, ending="fails", needs="approval", weight=1),
    Scenario(name="supplier-paid", workflow=PAYMENT, commits=4, ending="completes", weight=2),
    Scenario(
        name="cancelled-while-unwinding", workflow=TRIP, commits=5, ending="fails", needs="approval", weight=1,
        cancelled_while_unwinding=True,
    ),
    Scenario(
        name="report-incomplete", workflow=ORDER, commits=2, ending="fails", needs="person", weight=1,
        loses="charge-card",
    ),
    Scenario(
        name="committed-late", workflow=ORDER, commits=1, ending="is-cancelled", needs="person", weight=1,
        commits_late="book-shipment",
    ),
)  # fmt: skip

# So that each kind of thing can be seen soon after the start, these come first, in the table's order.
OPENING: Final = SCENARIOS[:8]

_CITIES: Final = ("Lisbon", "Oslo", "Kyoto", "Montreal", "Nairobi", "Valparaiso")
_SKUS: Final = ("lamp-brass", "chair-oak", "desk-walnut", "shelf-pine", "rug-wool")


def choose(allowed: frozenset[Needs], chance: random.Random) -> Scenario:
    """The next scenario, by weight, of those that need nobody but ``allowed``."""
    possible = [scenario for scenario in SCENARIOS if scenario.needs in allowed]
    return chance.choices(possible, [scenario.weight for scenario in possible])[0]


def new_inputs(workflow_id: str, chance: random.Random) -> dict[str, Any]:
    """Plausible inputs of a run of that workflow; every variable the document declares."""
    number = chance.randrange(10_000, 99_999)
    values: dict[str, Any] = {
        "orderId": f"o-{number}",
        "sku": chance.choice(_SKUS),
        "quantity": chance.randrange(1, 5),
        "customerId": f"c-{chance.randrange(100, 999)}",
        "amount": chance.randrange(1_500, 90_000) / 100,
        "currency": "EUR",
        "email": f"customer{number}@example.test",
        "trip": {"to": chance.choice(_CITIES), "nights": chance.randrange(1, 9)},
        "supplierId": f"s-{chance.randrange(10, 99)}",
        "invoiceId": f"inv-{number}",
        "supplierEmail": f"accounts{number}@example.test",
        "campaignId": f"cmp-{number}",
        "list": f"customers-{chance.choice(_CITIES).lower()}@example.test",
    }
    return {variable["name"]: values[variable["name"]] for variable in workflows()[workflow_id]["variables"]}
