"""`make demo` as a stranger meets it (issue: Must show; wire.md, Command line)."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil

from tests.acceptance.client import Client
from tests.acceptance.demo_process import REPOSITORY, STOP_S, DemoProcess, demo_environment, free_ports, running_demo
from tests.waiting import eventually

VISIBLE_S = 10.0
ATTENTION_S = 60.0
ROLES = {"operator", "lead", "approver", "auditor", "admin", "viewer", "service"}
KEYS = {"service", "operator", "lead", "approver", "auditor"}


def _refused(data_dir: Path, *, port: int, sandbox_port: int) -> str:
    """What a demo that cannot start says on stderr; it must end with code 1."""
    ended = subprocess.run(
        [sys.executable, "manage.py", "demo"],
        cwd=REPOSITORY,
        env=demo_environment(data_dir, port=port, sandbox_port=sandbox_port),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1, ended
    return ended.stderr


def _unwinding(client: Client) -> list[str]:
    return [run["runId"] for run in client.get("/v1/runs?limit=200")["runs"] if run["compensationStatus"] != "none"]


def _is_dead_lettered(client: Client, run_id: str) -> bool:
    events = client.get(f"/v1/runs/{run_id}/events/poll?lastSequence=0")["events"]
    return any(event["type"] == "run.dead_lettered" for event in events)


def _ended(processes: list[psutil.Process]) -> bool:
    gone, alive = psutil.wait_procs(processes, timeout=STOP_S)
    assert not alive, f"still there after {STOP_S:g} s: {[each.cmdline() for each in alive]}"
    return len(gone) == len(processes)


def test_a_start_shows_unwinds_soon_and_what_waits_for_people_within_a_minute(tmp_path: Path) -> None:
    with running_demo(tmp_path) as demo:
        demo.until_first_page()
        service, approver = demo.client("service"), demo.client("approver")
        eventually(lambda: _unwinding(service), timeout=VISIBLE_S)

        eventually(lambda: approver.get("/v1/interrupts")["interrupts"], timeout=ATTENTION_S)
        eventually(lambda: service.get("/v1/runs?compensationStatus=manual")["runs"], timeout=ATTENTION_S)
        eventually(lambda: any(_is_dead_lettered(service, each) for each in _unwinding(service)), timeout=ATTENTION_S)


def test_it_stops_everything_on_ctrl_c_and_goes_on_where_it_was(tmp_path: Path) -> None:
    with running_demo(tmp_path) as demo:
        demo.until_introduced()
        handed_out, seen = demo.handout(), eventually(lambda: _unwinding(demo.client("service")))
        family = demo.family()

        assert demo.end(signal.SIGINT) == 0
        assert _ended(family)

        demo.start().until_introduced()
        assert demo.handout() == handed_out
        assert set(seen) <= set(_unwinding(demo.client("service")))


def test_a_killed_demo_leaves_nothing_running(tmp_path: Path) -> None:
    with running_demo(tmp_path) as demo:
        demo.until_introduced()
        family = demo.family()
        assert len(family) >= len(("web", "worker", "worker1", "worker2", "beat", "sandbox", "generator"))

        demo.end(signal.SIGKILL)
        assert _ended(family)


def test_it_hands_out_every_login_and_key_to_its_owner_only(demo: DemoProcess) -> None:
    handed_out = demo.handout()

    assert demo.handout_mode() == 0o600
    assert set(handed_out) == {"url", "sandboxUrl", "tenants"}
    assert [tenant["id"] for tenant in handed_out["tenants"]] == ["acme", "globex"]
    for tenant in handed_out["tenants"]:
        assert set(tenant) == {"id", "apiKeys", "users"}
        assert set(tenant["apiKeys"]) == KEYS
        assert {role for user in tenant["users"] for role in user["roles"]} == ROLES
        assert sum(user["roles"] == ["approver"] for user in tenant["users"]) == 2
        assert all(user["username"] in demo.output.read_text() for user in tenant["users"])


def test_both_tenants_know_the_example_workflows_and_only_their_own_runs(demo: DemoProcess) -> None:
    """CMP-606."""
    acme, globex = demo.client("service", 0), demo.client("service", 1)
    for client in (acme, globex):
        names = {workflow["workflowId"] for workflow in client.get("/v1/workflows")["workflows"]}
        assert {"order-fulfilment", "travel-booking", "supplier-payment"} <= names
    seen = eventually(lambda: (_unwinding(acme), _unwinding(globex)))
    assert not set(seen[0]) & set(seen[1])


def test_a_port_in_use_is_named_with_the_variable_that_changes_it(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port, [other] = taken.getsockname()[1], free_ports(1)
        assert f"Port {port} is in use. Set PORT" in _refused(tmp_path, port=port, sandbox_port=other)
        assert f"Port {port} is in use. Set SANDBOX_PORT" in _refused(tmp_path, port=other, sandbox_port=port)


def test_a_second_demo_on_the_same_data_is_refused(demo: DemoProcess) -> None:
    port, sandbox_port = free_ports(2)
    said = _refused(demo.data_dir, port=port, sandbox_port=sandbox_port)
    assert f"A demo already runs on {demo.data_dir}" in said
