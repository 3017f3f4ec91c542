"""The registry documents of everything the example workflows call in the sandbox, forward and inverse."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string", "minLength": 1}
_AMOUNT = {"type": "number", "exclusiveMinimum": 0}
_QUANTITY = {"type": "number", "exclusiveMinimum": 0}
_TRIP = {"type": "object"}
_PAYMENT = {"amount": _AMOUNT, "currency": _TEXT}

# restorationGap, propagationReach, temporalDecay, externalDependence: 0 to 4 each, set by people (GTW-105).
_RESERVATION = (1, 0, 1, 1)
_MONEY = (2, 2, 2, 3)
_BOOKING = (2, 1, 3, 2)
_MESSAGE = (4, 3, 2, 2)
_BOOKKEEPING = (1, 1, 1, 0)


def node_types(base_url: str) -> list[dict[str, Any]]:
    """Every sandbox node type, its requests and readbacks at `base_url` (such as `http://127.0.0.1:8090`)."""
    at = base_url.rstrip("/")
    return [*_forward(at), *_inverse(at), _recall_message(at), _manual()]


def _forward(at: str) -> list[dict[str, Any]]:
    travel = {"trip": _TRIP}
    return [
        _http(at, "inventory.reserve", "Reserve stock", _RESERVATION, {"sku": _TEXT, "quantity": _QUANTITY}),
        _http(at, "payments.charge", "Charge a customer", _MONEY, {"customerId": _TEXT, **_PAYMENT}),
        _http(
            at, "payments.transfer", "Transfer to a supplier", _MONEY,
            {"supplierId": _TEXT, "invoiceId": _TEXT, **_PAYMENT},
        ),
        _http(at, "shipping.book", "Book a shipment", _BOOKING, {"orderId": _TEXT}),
        _http(at, "mail.send", "Send a message", _MESSAGE, {"to": _TEXT}),
        _http(at, "ledger.hold", "Hold an amount", _RESERVATION, {"amount": _AMOUNT}),
        _http(at, "ledger.post", "Post to the ledger", _BOOKKEEPING, {"orderId": _TEXT}),
        _http(at, "travel.book_flight", "Book a flight", _BOOKING, travel),
        _http(at, "travel.book_hotel", "Book a hotel", _BOOKING, travel),
        _http(at, "travel.book_car", "Book a car", _BOOKING, travel),
        _http(at, "travel.issue", "Issue tickets", _BOOKING, travel),
    ]  # fmt: skip


def _inverse(at: str) -> list[dict[str, Any]]:
    release = {"reservationId": _TEXT, "quantity": _QUANTITY}
    kinds = {"type": "string", "enum": ["flight", "hotel", "car"]}
    return [
        _http(at, "inventory.release", "Release stock", _RESERVATION, release, required=["reservationId"]),
        _http(
            at, "payments.refund", "Refund a charge", _MONEY,
            {"chargeId": _TEXT, **_PAYMENT, "memo": _TEXT}, required=["chargeId"],
        ),
        _http(
            at, "payments.recall", "Recall a transfer", _MONEY,
            {"transferId": _TEXT, "invoice": {"type": "object"}}, required=["transferId"],
        ),
        _http(at, "shipping.cancel", "Cancel a shipment", _BOOKING, {"shipmentId": _TEXT}),
        _http(at, "ledger.release", "Release a hold", _RESERVATION, {"holdId": _TEXT}),
        _http(at, "travel.cancel", "Cancel a booking", _BOOKING, {"bookingId": _TEXT, "kind": kinds},
              required=["bookingId"]),
    ]  # fmt: skip


def _http(
    at: str,
    name: str,
    title: str,
    vector: tuple[int, int, int, int],
    ports: dict[str, Any],
    *,
    required: list[str] | None = None,
) -> dict[str, Any]:
    system, _, verb = name.partition(".")
    document: dict[str, Any] = {
        "nodeTypeId": f"sandbox.{name}",
        "kind": "http",
        "title": title,
        "system": system,
        "request": {"method": "POST", "url": f"{at}/{system}/{verb}", "body": "$input"},
        "inputSchema": _schema(ports, required=required),
        "idempotency": {"header": "Idempotency-Key", "honoured": True},
        "readback": _readback(at),
        "success": {"status": [200, 201]},
        "retryable": {"status": [408, 425, 429, 500, 502, 503, 504]},
        "receipt": "$.receiptId",
        "output": "$",
        "settleMs": 500,
        "keyLifetimeHours": 24,
        "recovery": _recovery(vector),
        "requiresApproval": False,
        "retry": {"maxAttempts": 3, "backoffMs": 500},
        "timeoutMs": 10_000,
        "maxConcurrency": 200,
    }
    return document | {name: f"$.{name}" for name in ("amount", "currency") if name in ports}


def _recall_message(at: str) -> dict[str, Any]:
    """A system of the old kind: it promises nothing about keys and cannot be asked, so a lost answer stays unknown."""
    document = _http(at, "mail.recall", "Recall a message", _MESSAGE, {"messageId": _TEXT})
    del document["readback"]
    return document | {"idempotency": {"header": "Idempotency-Key", "honoured": False}}


def _manual() -> dict[str, Any]:
    return {
        "nodeTypeId": "sandbox.manual.done",
        "kind": "manual",
        "title": "Done by a person, elsewhere",
        "system": "manual",
        "inputSchema": {"type": "object"},
        "recovery": _recovery(_BOOKKEEPING),
        "requiresApproval": False,
    }


def _schema(ports: dict[str, Any], *, required: list[str] | None) -> dict[str, Any]:
    return {"type": "object", "required": list(ports) if required is None else required, "properties": ports}


def _readback(at: str) -> dict[str, Any]:
    return {
        "method": "GET",
        "url": f"{at}/effects/{{key}}",
        "applied": {"status": [200], "path": "$.state", "equals": "applied"},
        "notApplied": {"status": [404]},
    }


def _recovery(vector: tuple[int, int, int, int]) -> dict[str, int]:
    gap, reach, decay, dependence = vector
    return {
        "restorationGap": gap,
        "propagationReach": reach,
        "temporalDecay": decay,
        "externalDependence": dependence,
    }
