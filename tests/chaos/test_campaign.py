"""Short rounds of the fault campaign, which `make chaos` plays for long."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import REPOSITORY

pytestmark = pytest.mark.chaos


def campaign(tmp_path: Path, *arguments: str) -> list[dict[str, Any]]:
    """What a short campaign says, line by line; it fails the test when it found something."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "tests.chaos.campaign", "--seconds", "1", *arguments]
    process = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


def test_cmp_404_everything_ends_although_the_postmaster_is_killed_again_and_again(tmp_path: Path) -> None:
    _, round_, end = campaign(tmp_path, "--only", "database", "--seed", "1")
    assert round_["done"]["database"] > 1
    assert round_["runs"] > 0
    assert end == {"rounds": 1, "failed": 0}


def test_cmp_404_everything_ends_whatever_happens_at_random(tmp_path: Path) -> None:
    told, round_, end = campaign(tmp_path, "--seed", "7")  # `make chaos` draws its own
    assert told["seed"] == 7
    assert sum(round_["done"].values()) > 1
    assert end == {"rounds": 1, "failed": 0}
