import pytest

from approvals.models import InterruptState
from compensation.domain.states import AttemptOutcome, ObligationState, Reason, RollupStatus, RunStatus, Trigger
from compensation.web import words


@pytest.mark.parametrize(
    ("kind", "states"),
    [
        ("entry", ObligationState),
        ("rollup", RollupStatus),
        ("run", RunStatus),
        ("interrupt", InterruptState),
        ("attempt", AttemptOutcome),
    ],
)
def test_every_wire_state_has_a_word_a_shape_and_a_tone(kind: str, states: type) -> None:
    for state in states:  # type: ignore[attr-defined]
        word = words.VOCABULARIES[kind][str(state)]
        assert all((word.human, word.shape, word.tone, word.meaning)), state


def test_within_a_vocabulary_no_two_words_read_the_same() -> None:
    for vocabulary in words.VOCABULARIES.values():
        humans = [word.human for word in vocabulary.values()]
        assert len(humans) == len(set(humans))


def test_undone_except_for_late_effects_is_not_fully_undone() -> None:
    """CMP-504: the wire's word stays."""
    late, without = words.rollup_word("completed", 2), words.rollup_word("completed", 0)
    assert (late.wire, late.human, late.tone) == ("completed", "Undone, except 2 late", "warn")
    assert without == words.ROLLUP["completed"]
    assert words.rollup_word("partial", 2) == words.ROLLUP["partial"]


@pytest.mark.parametrize("wire", [*Reason, *Trigger])
def test_every_reason_and_trigger_has_a_phrase(wire: str) -> None:
    assert wire in words.PHRASES


def test_a_word_that_is_new_is_shown_as_the_wire_spells_it() -> None:
    assert words.word("entry", "brand_new").human == "brand_new"
    assert words.phrase("brand_new-thing") == "brand new thing"
