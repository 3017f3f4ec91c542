"""config.env: what the environment may say, and how a wrong word is refused."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env


@pytest.mark.parametrize("given", ["ten", "-1", "0", "1.5", "٣"])
def test_number_names_the_variable_and_what_is_allowed(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("RECOURSE_RUNNER_SLOTS", given)
    with pytest.raises(ImproperlyConfigured, match=r"RECOURSE_RUNNER_SLOTS=.* an integer of at least 1"):
        env.number("RECOURSE_RUNNER_SLOTS", 2)


def test_number_below_the_least_is_refused_and_the_least_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOURSE_RUNNER_LINGER_MS", "0")
    assert env.number("RECOURSE_RUNNER_LINGER_MS", 1_500, least=0) == 0
    with pytest.raises(ImproperlyConfigured, match="at least 1"):
        env.number("RECOURSE_RUNNER_LINGER_MS", 1_500)


def test_require_names_everything_that_is_missing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://db/one")
    monkeypatch.setenv("SECRET_KEY", "")
    monkeypatch.delenv("CELERY_BROKER_URL", raising=False)
    with pytest.raises(ImproperlyConfigured, match=r"missing: CELERY_BROKER_URL, SECRET_KEY\."):
        env.require("DATABASE_URL", "CELERY_BROKER_URL", "SECRET_KEY")


def test_database_refuses_another_kind_of_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:////tmp/x.db")
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL must be a postgresql:// URL"):
        env.database(tmp_path)


def test_database_url_keeps_its_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:s%40e@db.internal:6432/recourse?sslmode=require")
    database = env.database(tmp_path)
    assert (database["USER"], database["PASSWORD"], database["HOST"]) == ("ann", "s@e", "db.internal")
    assert (database["PORT"], database["NAME"], database["OPTIONS"]) == (6432, "recourse", {"sslmode": "require"})


def test_without_database_url_the_connection_follows_from_the_folder_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert env.database(tmp_path) == env.database(tmp_path)
    assert env.database(tmp_path)["HOST"] != env.database(tmp_path / "other")["HOST"]


def test_a_generated_secret_is_private_and_the_same_for_all_who_race_for_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "secret.key"
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda _: env.generated(path), range(16)))
    assert secrets == {path.read_text()}
    assert len(path.read_text()) >= 50
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_an_empty_variable_counts_as_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("A_WORD", "SOME_WORDS", "A_FLAG", "A_NUMBER"):
        monkeypatch.setenv(name, "")
    assert env.text("A_WORD", "default") == "default"
    assert env.words("SOME_WORDS", ["default"]) == ["default"]
    assert env.flag("A_FLAG", default=True)
    assert env.number("A_NUMBER", 7) == 7
