"""The README's own commands, run against a running demo (issue: Must show, the scripted walk)."""

import re
import subprocess
from typing import Any

import pytest

from tests.acceptance.demo_process import REPOSITORY, DemoProcess
from tests.acceptance.readme import walk

WALK_S = 120


@pytest.fixture(scope="module")
def walked(demo: DemoProcess) -> dict[str, Any]:
    """What the walk left behind, asked for through the API: its run, plan, events and decisions."""
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", walk()],
        cwd=REPOSITORY,
        env=demo.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=WALK_S,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = re.search(r"^run (\S+)$", ended.stdout, re.MULTILINE)
    assert found, ended.stdout
    service, run = demo.client("service"), f"/v1/runs/{found[1]}"
    return {
        "output": ended.stdout,
        "run": service.get(run),
        "plan": service.get(f"{run}/compensation"),
        "events": service.get(f"{run}/events/poll?lastSequence=0")["events"],
        "decisions": demo.client("auditor").get(f"/v1/decisions?runId={found[1]}")["decisions"],
        "stats": demo.sandbox.get("/stats")["byKey"],
    }


def test_the_plan_has_three_inverses_and_one_effect_that_stays(walked: dict[str, Any]) -> None:
    """CMP-203, 320: strictly the reverse of the commits, the irreversible one in its place."""
    entries = sorted(walked["plan"]["entries"], key=lambda entry: entry["position"])
    assert [(entry["nodeId"], entry["outcome"]) for entry in entries] == [
        ("send-receipt", "irreversible"),
        ("book-shipment", "completed"),
        ("charge-card", "completed"),
        ("reserve-inventory", "completed"),
    ]
    assert [entry["ordinal"] for entry in entries] == [4, 3, 2, 1]
    assert [entry["attempts"] for entry in entries] == [0, 1, 1, 1]


def test_the_rollup_runs_and_ends_partial(walked: dict[str, Any]) -> None:
    """CMP §5: `running` while the refund waits for its approval, `partial` since a receipt cannot be unsent."""
    said = walked["output"].splitlines()
    assert "running" in said
    assert walked["plan"]["status"] == walked["run"]["compensationStatus"] == "partial"
    assert walked["run"]["status"] == "failed"


def test_the_log_tells_it_in_order(walked: dict[str, Any]) -> None:
    """CMP-303, 502, 601: requested before anything starts, started once, paused for the approval, no gaps."""
    events = walked["events"]
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    kinds = [event["type"] for event in events]
    told = [kind for kind in kinds if kind.startswith("compensation.")]
    assert told == ["compensation.requested", "compensation.started", "compensation.paused"]
    assert kinds.index("compensation.paused") < kinds.index("interrupt.resolved")


def test_the_sandbox_saw_one_effect_for_each_key(walked: dict[str, Any]) -> None:
    keys = [entry["idempotencyKey"] for entry in walked["plan"]["entries"] if entry["outcome"] == "completed"]
    assert len(set(keys)) == 3
    for key in keys:
        assert walked["stats"][key] == {"requests": 1, "effects": 1, "duplicates": 0}


def test_the_approval_is_on_record_with_person_version_and_digest(walked: dict[str, Any]) -> None:
    """CMP-602, 604: one row bound to who, which plan version and the digest that was shown."""
    [refund] = [entry for entry in walked["plan"]["entries"] if entry["nodeId"] == "charge-card"]
    [approval] = [each for each in walked["decisions"] if each["action"] == "approvals:respond"]
    assert approval["allowed"] is True
    assert approval["principalKind"] == "api_key"
    assert approval["onBehalfOf"].startswith("user:")
    assert approval["planVersion"] == walked["plan"]["planVersion"]
    assert approval["evidenceDigest"] == refund["digest"]
    assert approval["effectId"] == refund["effectId"]
