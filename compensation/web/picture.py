"""The unwinding picture: forward effects down one side in commit order, their inverses up the other, joined.

Pure geometry over what the queries gave; the template draws it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from compensation.domain.states import OrderingModel
from compensation.domain.workflow import WorkflowSpec
from compensation.models import Effect

ROW: Final = 68
GUTTER: Final = 52
ROW_REM: Final = 4.25
MAX_ROWS: Final = 60

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PictureRow:
    """One forward effect and what is owed for it.

    ``kind``: ``entry`` (in the plan), ``late`` (committed after it, so not in it), ``unplanned`` (owed, but the plan
    could not be made), ``declared`` (would enter a plan), ``nothing`` (nothing is declared for it).
    """

    ordinal: int
    node_id: str
    kind: str
    entry: Entry | None = None
    declared: str = ""


@dataclass(frozen=True, slots=True)
class Arc:
    """``path`` from an inverse to one that waits for it; ``met`` once the first has an outcome."""

    path: str
    head: str
    met: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """``rows`` in commit order; ``folded`` settled rows are left out of a long picture, and counted."""

    rows: Sequence[PictureRow]
    arcs: Sequence[Arc]
    folded: int
    branching: bool

    @property
    def height(self) -> int:
        return len(self.rows) * ROW

    @property
    def height_rem(self) -> str:
        return f"{len(self.rows) * ROW_REM}rem"


@dataclass(frozen=True, slots=True)
class _Kinds:
    """Why an effect has no entry. Under a plan that could not be made that alone makes none of them late (CMP-205)."""

    late: frozenset[int]
    unmade: bool

    @classmethod
    def of(cls, projection: Mapping[str, Any]) -> Self:
        late = frozenset(each["ordinal"] for each in projection["uncompensatedEffects"])
        return cls(late, projection["mintFailure"] is not None)

    def kind(self, effect: Effect, declared: str) -> str:
        if effect.ordinal in self.late:
            return "late"
        if not declared:
            return "nothing"
        return "unplanned" if self.unmade else "declared"


def draw(projection: Mapping[str, Any], effects: Sequence[Effect], workflow: WorkflowSpec) -> Picture:
    """The picture of a run as it stands now, at most `MAX_ROWS` rows."""
    by_ordinal = {entry["ordinal"]: entry for entry in projection["entries"]}
    kinds = _Kinds.of(projection)
    rows = [_row(effect, by_ordinal.get(effect.ordinal), workflow, kinds) for effect in effects]
    shown = _folded(rows)
    branching = projection["orderingModel"] == OrderingModel.DEPENDENCY_GRAPH
    return Picture(
        rows=shown, arcs=_arcs(shown) if branching else (), folded=len(rows) - len(shown), branching=branching
    )


def _row(effect: Effect, entry: Entry | None, workflow: WorkflowSpec, kinds: _Kinds) -> PictureRow:
    if entry is not None:
        return PictureRow(effect.ordinal, effect.node_id, "entry", entry)
    node = workflow.nodes.get(effect.node_id)
    declared = node.compensation.node_type_id if node and node.compensation else ""
    return PictureRow(effect.ordinal, effect.node_id, kinds.kind(effect, declared), declared=declared)


def _folded(rows: Sequence[PictureRow]) -> Sequence[PictureRow]:
    """All of a short picture; of a long one the rows that are not settled first, in commit order."""
    if len(rows) <= MAX_ROWS:
        return rows
    by_need = sorted(rows, key=lambda row: (row.entry is None or row.entry["outcome"] is not None, -row.ordinal))
    return sorted(by_need[:MAX_ROWS], key=lambda row: row.ordinal)


def _arcs(rows: Sequence[PictureRow]) -> list[Arc]:
    place = {row.entry["effectId"]: at for at, row in enumerate(rows) if row.entry}
    outcome = {row.entry["effectId"]: row.entry["outcome"] for row in rows if row.entry}
    return [
        _arc(place[before], place[effect_id], met=outcome[before] is not None)
        for effect_id in place
        for before in _predecessors(rows[place[effect_id]])
        if before in place
    ]


def _predecessors(row: PictureRow) -> Sequence[str]:
    return row.entry["predecessors"] if row.entry else ()


def _arc(start: int, end: int, *, met: bool) -> Arc:
    """A curve in the gutter, wider the more rows it spans; it leaves a box below and enters one above its middle."""
    top, bottom = start * ROW + ROW * 0.62, end * ROW + ROW * 0.38
    reach = min(GUTTER - 4, 12 + 10 * abs(start - end))
    path = f"M0 {top:.0f}C{reach} {top:.0f} {reach} {bottom:.0f} 4 {bottom:.0f}"
    head = f"M9 {bottom - 5:.0f}L2 {bottom:.0f}L9 {bottom + 5:.0f}"
    return Arc(path, head, met)
