"""The closed shapes of request bodies, checked like every other document (compensation/domain/shapes.py)."""

from typing import Final

from approvals.models import Answer
from compensation.domain.node_type_shape import CREDENTIAL_REF
from compensation.domain.problems import Problem
from compensation.domain.shapes import Check, anything, array, closed, free_object, integer, one_of, text
from compensation.domain.states import ObligationState
from compensation.operations.acts import MAX_JUSTIFICATION
from compensation.operations.facts import MAX_FACTS

MAX_FEEDBACK: Final = 4000
MAX_SECRET: Final = 8192
MAX_TAGS: Final = 50
MAX_ALLOW: Final = 200
RUN_MODES: Final = ("hosted", "reported")

_WORDS = text(longest=MAX_JUSTIFICATION, shortest=0)
_EFFECT_ID = text(longest=64, pattern="[0-9a-f]{64}", says="an effectId: 64 lower-case hexadecimal digits")
_DIGEST = text(longest=64, pattern="[0-9a-f]{64}", says="the digest that was displayed: 64 hexadecimal digits")
_STATE = one_of((*ObligationState,))
_VERSION = integer(1)
_NODE_TYPE_ID = text(longest=128)

NOTHING: Final = closed({})


def document(value: object, pointer: str) -> list[Problem]:
    """A definition: an object, whose members its registration judges."""
    return free_object(value, pointer)


RUN: Final = closed(
    {"workflowId": text(longest=128)},
    {
        "inputs": free_object,
        "mode": one_of(RUN_MODES),
        "tags": array(text(longest=128), most=MAX_TAGS, unique=True),
        "metadata": free_object,
    },
)
CANCEL: Final = closed({}, {"reason": _WORDS})
FACTS: Final = closed({"facts": array(anything, least=1, most=MAX_FACTS)})

HOLD: Final = closed({"justification": text(longest=MAX_JUSTIFICATION)})
RELEASE: Final = closed({}, {"justification": _WORDS})

START: Final = closed({}, {"justification": _WORDS})
_SEEN: Final = {"expectedPlanVersion": _VERSION}
_ENTRY_SEEN: Final = {**_SEEN, "effectId": _EFFECT_ID, "expectedState": _STATE}
_WHY: Final = {"justification": text(longest=MAX_JUSTIFICATION)}
RETRY_ENTRY: Final = closed(_ENTRY_SEEN, {"justification": _WORDS})
RETRY_MINT: Final = closed(_SEEN, {"justification": _WORDS, "expectedState": one_of(("failed",))})
SKIP: Final = closed({**_ENTRY_SEEN, **_WHY})
SUBSTITUTE: Final = closed(
    {**_ENTRY_SEEN, **_WHY, "nodeTypeId": _NODE_TYPE_ID},
    {"nodeTypeVersion": _VERSION, "receipt": text(longest=2000), "evidence": text(longest=4000)},
)
TERMINATE: Final = closed({**_SEEN, **_WHY}, {"expectedState": text(longest=32)})


def retry(value: object, pointer: str) -> list[Problem]:
    """With an `effectId` the retry of an entry, without one that of a failed mint."""
    names_entry = not isinstance(value, dict) or "effectId" in value
    return (RETRY_ENTRY if names_entry else RETRY_MINT)(value, pointer)


def _action(value: object, pointer: str) -> list[Problem]:
    """A frozen entry is signed as it is: nothing but yes or no (wire.md, Endpoints)."""
    return one_of(Answer, what="is not an answer here: a frozen entry is accepted or rejected as it is")(value, pointer)


ANSWER: Final[Check] = closed(
    {
        "resumeValue": closed(
            {"action": _action, "digest": _DIGEST, "planVersion": _VERSION},
            {"feedback": text(longest=MAX_FEEDBACK, shortest=0)},
        )
    }
)


def _secret(value: object, pointer: str) -> list[Problem]:
    """A secret is not repeated in the answer that refuses it (CMP-304)."""
    if isinstance(value, str) and 1 <= len(value) <= MAX_SECRET:
        return []
    return [Problem(pointer, "is not a secret that can be kept", allowed=f"a string, 1 to {MAX_SECRET} long")]


CREDENTIAL: Final = closed({"ref": CREDENTIAL_REF, "secret": _secret})
SECRET: Final = closed({"secret": _secret})
EGRESS: Final = closed({"allow": array(text(longest=300), most=MAX_ALLOW, unique=True)})
