"""The bodies that requests carry, as OpenAPI describes them; `api.bodies` checks them."""

from typing import Final

from approvals.models import Answer
from compensation.api.bodies import RUN_MODES
from compensation.api.schemas import ANY_OBJECT, JUSTIFICATION, SHA256, TEXT, closed, items, some
from compensation.domain.states import ObligationState

NEW_RUN: Final = closed(
    {"workflowId": TEXT},
    {
        "inputs": {**ANY_OBJECT, "description": "values of the workflow's variables"},
        "mode": {**some(RUN_MODES), "description": "absent = reported; hosted is not offered by this host yet (422)"},
        "tags": items({"type": "string", "minLength": 1, "maxLength": 128}, maxItems=50, uniqueItems=True),
        "metadata": ANY_OBJECT,
    },
)
CANCEL: Final = closed({}, {"reason": JUSTIFICATION})
_SEEN: Final = {"expectedPlanVersion": {"type": "integer", "minimum": 1}}
_ON_ENTRY: Final = {**_SEEN, "effectId": SHA256, "expectedState": some(ObligationState)}
START: Final = closed({}, {"justification": JUSTIFICATION})
RETRY: Final = {
    "anyOf": [
        closed(_ON_ENTRY, {"justification": JUSTIFICATION}),
        closed(_SEEN, {"expectedState": {"type": "string", "enum": ["failed"]}, "justification": JUSTIFICATION}),
    ]
}
SKIP: Final = closed({**_ON_ENTRY, "justification": JUSTIFICATION})
SUBSTITUTE: Final = closed(
    {**_ON_ENTRY, "justification": JUSTIFICATION, "nodeTypeId": TEXT},
    {"nodeTypeVersion": {"type": "integer", "minimum": 1}, "receipt": TEXT, "evidence": TEXT},
)
TERMINATE: Final = closed({**_SEEN, "justification": JUSTIFICATION}, {"expectedState": TEXT})
HOLD: Final = closed({"justification": JUSTIFICATION})
RELEASE: Final = closed({}, {"justification": JUSTIFICATION})
ANSWER: Final = closed(
    {
        "resumeValue": closed(
            {"action": some(Answer), "digest": SHA256, "planVersion": {"type": "integer", "minimum": 1}},
            {"feedback": {"type": "string", "maxLength": 4000}},
        )
    }
)
NEW_CREDENTIAL: Final = closed({"ref": TEXT, "secret": {**TEXT, "writeOnly": True}})
SECRET: Final = closed({"secret": {**TEXT, "writeOnly": True}})
EGRESS: Final = closed({"allow": items(TEXT, maxItems=200, uniqueItems=True)})
