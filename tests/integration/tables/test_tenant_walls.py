"""A child row and its parent are of one tenant, whatever is written by hand (architecture.md, composite keys)."""

import json
from importlib import import_module
from typing import Any

import pytest

from tests.integration.tables.sql import Subject, execute, only, refuses, undone

JOINS = import_module("compensation.migrations.0002_tenant_walls").JOINS


def column(subject: Subject, child: str, name: str) -> Any:
    """Where the column points in one row of this tenant that has a parent."""
    return only(
        f"select {name} from {child} where tenant_id = %s and {name} is not null limit 1",
        [subject.stage.home.tenant.pk],
    )


@pytest.mark.parametrize(("child", "name", "parent"), JOINS, ids=[f"{child}.{name}" for child, name, _ in JOINS])
def test_a_row_cannot_point_to_another_tenants_parent(
    subject: Subject, stranger: Subject, child: str, name: str, parent: str
) -> None:
    mine = column(subject, child, name)
    theirs = only(
        f"select id from {parent} p where tenant_id = %s and not exists"
        f" (select 1 from {child} where {name} = p.id and tenant_id <> p.tenant_id) order by id desc limit 1",
        [stranger.stage.home.tenant.pk],
    )
    statement = f"update {child} set {name} = %s where {name} = %s"
    with undone():
        execute(f"alter table {child} disable trigger user")
        refuses(statement, [theirs, mine], says=f"{child}_{name}_tenant_fk")


@pytest.mark.parametrize(("child", "name", "parent"), JOINS, ids=[f"{child}.{name}" for child, name, _ in JOINS])
def test_a_row_cannot_point_nowhere(subject: Subject, child: str, name: str, parent: str) -> None:
    with undone():
        execute(f"alter table {child} disable trigger user")
        statement = f"update {child} set {name} = gen_random_uuid() where {name} = %s"
        refuses(statement, [column(subject, child, name)], says=f"{child}_{name}_tenant_fk")


def test_every_foreign_key_to_a_tenants_row_carries_the_tenant(db: None) -> None:
    """No join was forgotten: a column that refers to a row of a tenant does so together with the tenant."""
    known = {(child, name) for child, name, _ in JOINS}
    found = only(
        """
        select coalesce(jsonb_agg(jsonb_build_array(c.relname, a.attname)), '[]')
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        where c.relkind = 'r' and a.attnum > 0 and not a.attisdropped and a.atttypid = 'uuid'::regtype
            and a.attname like '%%\\_id' escape '\\'
            and (c.relname like 'compensation\\_%%' or c.relname like 'approvals\\_%%')
        """,
        [],
    )

    columns = {tuple(each) for each in (json.loads(found) if isinstance(found, str) else found)}
    opaque = {
        ("approvals_interrupt", "subject_id"),
        ("approvals_interrupt", "context_id"),
        ("compensation_plangrant", "content_object_id"),
        ("compensation_workflowgrant", "content_object_id"),
    }
    assert columns - opaque == known
