"""config.embedded: where the server of a DATA_DIR is found, known without asking the server."""

import os
from pathlib import Path

import pytest

from config.postgres_guardian import SUN_PATH, socket_dir


def test_the_socket_lies_in_the_cluster_where_its_path_is_short_enough() -> None:
    assert socket_dir(Path("/srv/recourse")) == Path("/srv/recourse/pg")


def test_a_long_data_dir_gets_a_short_socket_of_its_own() -> None:
    long, other = Path("/srv") / ("x" * 120), Path("/srv") / ("y" * 120)
    found = socket_dir(long)
    assert len(os.fsencode(found / ".s.PGSQL.5432")) < SUN_PATH
    assert found == socket_dir(long) != socket_dir(other)


def test_the_socket_does_not_move_with_tmpdir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    long = Path("/srv") / ("x" * 120)
    before = socket_dir(long)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert socket_dir(long) == before
