"""A workflow's policy as sentences (CMP-103)."""

from collections.abc import Sequence
from typing import Final

from compensation.domain.policy import PolicySpec
from compensation.domain.states import ApprovalScope, Disposition, OnParentCancel
from compensation.web.words import phrase

_ORDER: Final = {
    "reverse-completion": "Effects are undone one at a time, the newest first.",
    "dependency-graph": "What depended on an effect is undone before it; whatever is independent runs side by side.",
}
_EXHAUSTED: Final = {
    Disposition.RECORD_OUTCOME: "When an inverse runs out of attempts that is recorded, and the unwind goes on.",
    Disposition.MANUAL_INTERVENTION: "When an inverse runs out of attempts the unwind stops until an operator acts.",
}
_APPROVAL: Final = {
    ApprovalScope.DECLARED: "A person approves only the inverses that are declared so.",
    ApprovalScope.ALL: "A person approves every inverse before it runs, and every decision to leave one out.",
}
_CANCEL: Final = {
    OnParentCancel.CONTINUE: "A cancel during the unwind lets it go on.",
    OnParentCancel.PAUSE: "A cancel during the unwind pauses it until somebody resumes it.",
    OnParentCancel.MANUAL: "A cancel during the unwind stops it until an operator acts.",
}


def policy_in_words(policy: PolicySpec | None) -> Sequence[str]:
    """What the policy does, one sentence a rule; without a policy, that nothing is ever undone (CMP-106)."""
    if policy is None:
        return ["There is no compensation policy: no unwind ever starts, whatever the steps declare."]
    triggers = " or when ".join(sorted(phrase(trigger) for trigger in policy.triggers))
    return [
        f"An unwind starts when {triggers}.",
        _ORDER[policy.ordering_model],
        _APPROVAL[policy.approval_scope],
        _EXHAUSTED[policy.exhausted_disposition],
        _CANCEL[policy.on_parent_cancel],
    ]
