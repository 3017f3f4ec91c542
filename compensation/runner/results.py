"""A call on its way out, and what it brought back on its way to be recorded."""

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
    """A claimed entry with all its call needs, so that no database is asked while calls are out."""

    claimed: Claimed
    spec: NodeTypeSpec
    secrets: Mapping[str, Secret] = field(repr=False)


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
