"""A call on its way out, and what it brought back on its way to be recorded."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from compensation.connectors.credentials import Secret
from compensation.connectors.http import CallResult
from compensation.connectors.readback import ReadbackVerdict
from compensation.domain.node_type import NodeTypeSpec
from compensation.domain.retry import Verdict, classify
from compensation.runner.claims import Claimed


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """A claimed entry with all its call needs, so that no database is asked while calls are out.

    ``send_by`` is on the monotonic clock, in seconds: the claim plus the lease's margin over the call's own timeout.
    """

    claimed: Claimed
    spec: NodeTypeSpec
    secrets: Mapping[str, Secret] = field(repr=False)
    send_by: float

    def is_late(self) -> bool:
        """Whether a call that began now could outlive its lease, because this process stood still since the claim.

        Somebody else may have read the effect back by then, as not applied, and presented it again (CMP-404, 405).
        """
        return time.monotonic() > self.send_by


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """A finished attempt or readback of one claimed entry."""

    order: Order
    result: CallResult | ReadbackVerdict

    @property
    def claimed(self) -> Claimed:
        return self.order.claimed

    @property
    def verdict(self) -> Verdict | None:
        """What the attempt proves; None for a readback."""
        if not isinstance(self.result, CallResult):
            return None
        spec = self.order.spec
        return classify(self.result.answer(), success=spec.success, retryable=spec.retryable)

    @property
    def succeeded(self) -> bool:
        return self.verdict == Verdict.SUCCEEDED
