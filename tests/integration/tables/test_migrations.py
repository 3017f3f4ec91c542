"""The migrations run forward and back, and forward again to the same tables."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection, connections

SCRATCH = "scratch_migrations"


@pytest.fixture
def scratch(db: None) -> Iterator[str]:
    """An empty database of its own."""
    name = f"{connection.settings_dict['NAME']}_{SCRATCH}"
    with connection.cursor() as cursor:
        cursor.execute(f'drop database if exists "{name}"')
        cursor.execute(f'create database "{name}"')
    connections.settings[SCRATCH] = {**connection.settings_dict, "NAME": name}
    yield SCRATCH
    connections[SCRATCH].close()
    connections[SCRATCH].close_pool()  # type: ignore[attr-defined]
    del connections[SCRATCH]
    del connections.settings[SCRATCH]
    with connection.cursor() as cursor:
        cursor.execute(f'drop database "{name}"')


def schema(alias: str) -> set[tuple[str, str]]:
    """Every constraint, index, trigger and column of ours, as the catalogue spells it."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            """
            select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid::regclass::text ~ %(ours)s
            union all select indexname, indexdef from pg_indexes where tablename ~ %(ours)s
            union all select tgname, pg_get_triggerdef(oid) from pg_trigger
                where tgrelid::regclass::text ~ %(ours)s and not tgisinternal
            union all select table_name || '.' || column_name, data_type || is_nullable
                from information_schema.columns where table_name ~ %(ours)s
            """,
            {"ours": "^(audit|approvals|compensation)_"},
        )
        return set(cursor.fetchall())


def test_migrations_run_forward_and_back(scratch: str) -> None:
    migrate = {"database": scratch, "verbosity": 0, "interactive": False}
    call_command("migrate", **migrate)
    forward = schema(scratch)
    assert any(name == "plan_one_per_run" for name, _ in forward)
    for app in ("compensation", "approvals"):
        call_command("migrate", app, "zero", **migrate)
    left = {name.split(".")[0] for name, _ in schema(scratch)}
    assert not any(name.startswith(("compensation_", "approvals_")) for name in left)
    call_command("migrate", **migrate)
    assert schema(scratch) == forward


def test_no_model_change_waits_for_a_migration(db: None) -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
