from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import links_of, text_of
from tests.support.stage import Stage


def test_identity_digest_key_and_bounds_are_shown(asking: Stage, visit: Visit) -> None:
    """CMP-302, 306, 310, 311."""
    run = asking.fail("a", "b")
    entry = asking.entry(run, "a")
    words = text_of(visit(asking.home.auditor).get("entry", run.pk, entry.effect_id))
    for shown in (entry.effect_id, entry.idempotency_key, entry.digest, "a:1", '"id":"a-1"', "3 s"):
        assert shown in words


def test_the_frozen_input_takes_a_permission(asking: Stage, visit: Visit) -> None:
    run = asking.fail("a", "b")
    words = text_of(visit(asking.home.viewer).get("entry", run.pk, asking.entry(run, "a").effect_id))
    assert '"a-1"' not in words
    assert "takes the permission to see inputs" in words


def test_every_attempt_is_kept_newest_first_with_its_clocks(unwinding: Stage, visit: Visit) -> None:
    """CMP-401, 402."""
    unwinding.fault("undo", "fail", times=1)
    run = unwinding.fail("a")
    unwinding.work()
    answer = visit(unwinding.home.viewer).get("entry", run.pk, unwinding.entry(run, "a").effect_id)
    assert [attempt["attempt"] for attempt in answer.context["attempts"]] == [2, 1]
    words = text_of(answer)
    assert "Attempt 2 Succeeded" in words
    assert "Intended" in words
    assert "Observed" in words


def test_an_unfolded_row_receives_the_attempts_alone_and_a_link_gives_a_page(unwinding: Stage, visit: Visit) -> None:
    run = unwinding.fail("a")
    unwinding.work()
    visitor, effect = visit(unwinding.home.viewer), unwinding.entry(run, "a").effect_id
    part, page = visitor.get_part("attempts", run.pk, effect), visitor.get("attempts", run.pk, effect)
    assert "Attempt 1" in text_of(part)
    assert "<html" not in part.content.decode()
    assert "<html" in page.content.decode()


def test_acts_are_offered_by_role_and_state(unwinding: Stage, visit: Visit) -> None:
    """CMP-609, 612."""
    unwinding.fault("undo", "reject")
    run = unwinding.fail("a")
    unwinding.work()
    effect = unwinding.entry(run, "a").effect_id

    def offered(person: str) -> set[str]:
        links = links_of(visit(getattr(unwinding.home, person)).get("entry", run.pk, effect))
        return {act for act in ("retry", "skip", "substitute") for link in links if link.endswith(f"/{act}/")}

    assert offered("operator") == {"retry"}
    assert offered("lead") == {"retry", "skip", "substitute"}
    assert offered("auditor") == offered("viewer") == offered("approver") == set()


def test_a_completed_entry_offers_nothing_and_says_why(unwinding: Stage, visit: Visit) -> None:
    """CMP-312."""
    run = unwinding.fail("a")
    unwinding.work()
    words = text_of(visit(unwinding.home.lead).get("entry", run.pk, unwinding.entry(run, "a").effect_id))
    assert "The entry is 'completed' for ever." in words
