from typing import Any

from compensation.web.consequences import blocked_behind, if_stopped


def entry(node_id: str, state: str, *blocked_by: str, **different: Any) -> dict[str, Any]:
    return {"nodeId": node_id, "effectId": f"e-{node_id}", "state": state, "shown": state, "because": "",
            "maybeApplied": 0, "blockedBy": [f"e-{each}" for each in blocked_by], **different}  # fmt: skip


def test_what_is_open_is_left_standing_and_the_rollup_is_the_domains_fold() -> None:
    """CMP-609: the consequence is said before the act."""
    stop = if_stopped(
        [entry("refund", "completed"), entry("hotel", "held"), entry("mail", "irreversible")], started=True
    )
    assert stop.rollup == "partial"
    assert stop.done == "1 of 3 committed effects is undone: refund."
    assert stop.standing == [
        "hotel stays done; its inverse would not run (now: held)",
        "mail stays done: cannot be undone",
    ]


def test_nothing_undone_reads_failed_with_its_reason() -> None:
    """CMP-503."""
    stop = if_stopped([entry("hotel", "failed", because="a person rejected it")], started=False)
    assert (stop.rollup, stop.done) == ("failed", "None of 1 committed effects is undone.")
    assert stop.standing == ["hotel stays done: not undone (a person rejected it)"]


def test_what_is_not_proven_is_not_said_to_stay_done() -> None:
    """CMP-405: an attempt that may have taken effect leaves both possible."""
    unknown = {"shown": "failed-unknown", "because": "exhausted after 3 attempts", "maybeApplied": 3}
    stop = if_stopped([entry("hotel", "failed", **unknown), entry("mail", "running", maybeApplied=1)], started=True)
    assert stop.standing == [
        "hotel may or may not be undone: failed, effect unknown (exhausted after 3 attempts)",
        "mail may yet be undone: the call in flight ends by itself",
    ]


def test_skipping_one_of_two_open_entries_lets_the_unwind_go_on() -> None:
    entries = [entry("a", "failed"), entry("b", "waiting")]
    assert if_stopped(entries, started=True, skipping="e-a").rollup == "running"
    assert if_stopped(entries[:1], started=True, skipping="e-a").rollup == "failed"


def test_what_waits_behind_is_found_through_others() -> None:
    entries = [entry("a", "failed"), entry("b", "waiting", "a"), entry("c", "waiting", "b"), entry("d", "waiting")]
    assert blocked_behind(entries, "e-a") == ["b", "c"]
