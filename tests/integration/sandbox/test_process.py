"""The sandbox as a process: what survives a kill, how it starts, what it says when it cannot."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.sandbox import REPOSITORY, SandboxProcess


def test_what_was_answered_is_there_after_a_kill(sandbox: SandboxProcess) -> None:
    """An answer is a promise: every effect that a client was told of survives SIGKILL in the middle of a load."""
    answered: list[str] = []

    def load(worker: int) -> None:
        for number in range(10_000):
            key = f"k-{worker}-{number}"
            try:
                answer = sandbox.post("/payments/refund", {"chargeId": f"ch-{worker}-{number}"}, key=key)
            except OSError:
                return
            assert answer.status == 201
            answered.append(key)

    with ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(load, worker) for worker in range(4)]
        while len(answered) < 100:
            assert not any(worker.done() for worker in workers)
        sandbox.kill()
    for worker in workers:
        worker.result()
    sandbox.restart()
    stored = {effect["key"] for effect in sandbox.effects()}
    assert set(answered) <= stored
    assert sandbox.stats()["effects"] == len(stored)


def test_counters_survive_a_restart(sandbox: SandboxProcess) -> None:
    sandbox.faults("/payments", "fail", times=1)
    for _ in range(3):
        sandbox.post("/payments/refund", {"chargeId": "ch_1"}, key="k")
    before = sandbox.stats()
    sandbox.kill()
    sandbox.restart()
    assert sandbox.stats() == before
    assert before["byKey"]["k"] == {"requests": 3, "effects": 1, "duplicates": 1}


def test_the_base_delay_holds_for_every_answer() -> None:
    with SandboxProcess(delay_ms=150) as slow:
        started = time.monotonic()
        slow.post("/payments/refund", {"chargeId": "ch_1"}, key="k")
        assert slow.effect("k") is not None
        assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize(
    ("words", "by_environment"),
    [(["manage.py", "sandbox", "--port=0", "--data-dir={}"], {}),
     (["-m", "compensation.sandbox"], {"SANDBOX_PORT": "0", "DATA_DIR": "{}"})],
    ids=["options of manage.py", "environment"],
)  # fmt: skip
def test_it_starts_as_told_and_a_sigterm_ends_it_cleanly(
    tmp_path: Path, words: list[str], by_environment: dict[str, str]
) -> None:
    command = [sys.executable, *(word.format(tmp_path) for word in words)]
    environment = os.environ | {name: value.format(tmp_path) for name, value in by_environment.items()}
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        running.terminate()
        assert running.wait(10) == 0
    assert line.startswith("Sandbox ledger: http://127.0.0.1:")
    assert (tmp_path / "sandbox.sqlite3").exists()


def test_a_port_in_use_is_said_on_stderr_with_exit_code_1(sandbox: SandboxProcess, tmp_path: Path) -> None:
    port = sandbox.url.rpartition(":")[2]
    command = [sys.executable, "-m", "compensation.sandbox", "--port", port, "--data-dir", str(tmp_path)]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 1
    assert f"could not start on 127.0.0.1:{port}" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(("option", "value"), [("--port", "70000"), ("--port", "x"), ("--delay-ms", "-1")])
def test_an_option_that_is_no_number_is_said_with_exit_code_2(option: str, value: str) -> None:
    command = [sys.executable, "-m", "compensation.sandbox", f"{option}={value}"]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 2
    assert option in ended.stderr
