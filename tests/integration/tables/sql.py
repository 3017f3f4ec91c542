"""Hand-written SQL against the walls. Whatever a statement does is rolled back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.db import DatabaseError, connection, transaction

from compensation.models import Run
from tests.support.stage import Stage

# Another value of a column, whatever it holds, by its type.
ANOTHER: Final = {
    "text": "'x' || substr(coalesce({0}, ''), 2)",
    "character varying": "'x' || substr(coalesce({0}, ''), 2)",
    "integer": "coalesce({0}, 0) + 1",
    "bigint": "coalesce({0}, 0) + 1",
    "boolean": "not {0}",
    "uuid": "gen_random_uuid()",
    "timestamp with time zone": "coalesce({0}, now()) + interval '1 second'",
    "jsonb": "'{{\"another\": true}}'",
    "ARRAY": "array_append({0}, '1')",
}


@dataclass(frozen=True)
class Subject:
    """One run with rows of every kind."""

    stage: Stage
    run: Run

    def row(self, table: str) -> Any:
        """The id of a row of a table that belongs to this tenant: the oldest one."""
        return only(f"select id from {table} where tenant_id = %s order by id limit 1", [self.stage.home.tenant.pk])

    def entry(self, node_id: str) -> Any:
        return self.stage.entry(self.run, node_id).pk


@contextmanager
def undone() -> Iterator[None]:
    """Whatever happens in the body is rolled back."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def execute(statement: str, params: Sequence[Any] = ()) -> int:
    """Run a statement and check what is deferred; how many rows it touched."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        touched: int = cursor.rowcount
        cursor.execute("set constraints all immediate")
    return touched


def only(statement: str, params: Sequence[Any] = ()) -> Any:
    """The one value a query gives."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        row = cursor.fetchone()
    assert row is not None, statement
    return row[0]


def refuses(statement: str, params: Sequence[Any] = (), *, says: str) -> None:
    """The database refuses the statement with an error that matches `says`."""
    with undone(), pytest.raises(DatabaseError, match=says):
        execute(statement, params)


def accepts(statement: str, params: Sequence[Any] = ()) -> None:
    """The database takes the statement, and it touches a row."""
    with undone():
        assert execute(statement, params) >= 1, statement


def copy(table: str, row: Any, **changes: Any) -> tuple[str, list[Any]]:
    """A statement that inserts a copy of a row, with a new id and these columns different."""
    changed = "jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid()) || %s)"
    statement = f"insert into {table} select ({changed}).* from {table} t where id = %s"
    return statement, [json.dumps(changes, default=str), row]


def another(table: str, column: str) -> str:
    """An SQL expression for another value of a column."""
    kind = only(
        "select data_type from information_schema.columns where table_name = %s and column_name = %s", [table, column]
    )
    return ANOTHER[kind].format(column)


@contextmanager
def walls_down() -> Iterator[None]:
    """No trigger acts in the body: how a test brings a row into a state that nothing else could."""
    with connection.cursor() as cursor:
        cursor.execute("set local session_replication_role = replica")
        yield
        cursor.execute("set local session_replication_role = origin")
