"""What this host can do, from the constants the engine itself uses (CMP §8)."""

from typing import Any, Final

from django.conf import settings

from approvals.models import Answer
from audit.permissions import ROLES
from compensation.domain.states import DEFAULT_PROFILE_VERSION, OrderingModel, Trigger
from compensation.operations.approving import PERMISSION
from compensation.queries.snapshots import EVENT_LOG_SCHEMA_VERSION

PROTOCOL_VERSION: Final = "1.0"
IMPLEMENTATION: Final = {"name": "recourse", "version": "0.1.0"}
DEAD_LETTER_RETENTION_DAYS: Final = 90
MAX_BODY_BYTES: Final = 1024 * 1024


def manifest() -> dict[str, Any]:
    """The discovery document. Without the compensation feature nothing advertises it.

    The rounds and envelopes of ``limits`` are those of conversations with a model, which no run here holds: 0.
    """
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "implementation": IMPLEMENTATION,
        "supportedEnvelopes": [],
        "schemaVersions": {},
        "supportedTransports": ["rest"],
        "eventLogSchemaVersion": EVENT_LOG_SCHEMA_VERSION,
        "limits": {
            "clarificationRounds": 0,
            "schemaRounds": 0,
            "envelopesPerTurn": 0,
            "maxRequestBodyBytes": MAX_BODY_BYTES,
            "requestsPerMinute": settings.RATE_LIMIT_PER_MINUTE,
        },
        "runModes": ["reported"],
        "deadLetter": {"supported": True, "retentionDays": DEAD_LETTER_RETENTION_DAYS},
        "authorization": {"supported": True, "failClosed": True, "roles": sorted(ROLES)},
        "interrupt": {
            "kinds": sorted(PERMISSION),
            "actions": [answer.value for answer in Answer],
            "requires": ["digest", "planVersion"],
        },
        **({"compensation": _compensation()} if settings.COMPENSATION_ENABLED else {}),
    }


def _compensation() -> dict[str, Any]:
    return {
        "supported": True,
        "profileVersion": DEFAULT_PROFILE_VERSION,
        "orderingModels": [model.value for model in OrderingModel],
        "triggers": [trigger.value for trigger in Trigger],
        "manualIntervention": True,
    }
