"""Composite foreign keys: a child row and its parent always belong to the same tenant."""

from django.db import migrations

# child table, its column, parent table
JOINS = (
    ("compensation_workflowversion", "workflow_id", "compensation_workflow"),
    ("compensation_nodetypeversion", "node_type_id", "compensation_nodetype"),
    ("compensation_run", "workflow_version_id", "compensation_workflowversion"),
    ("compensation_runevent", "run_id", "compensation_run"),
    ("compensation_fact", "run_id", "compensation_run"),
    ("compensation_effect", "run_id", "compensation_run"),
    ("compensation_plan", "run_id", "compensation_run"),
    ("compensation_planversion", "plan_id", "compensation_plan"),
    ("compensation_obligation", "plan_id", "compensation_plan"),
    ("compensation_obligation", "run_id", "compensation_run"),
    ("compensation_obligation", "node_type_version_id", "compensation_nodetypeversion"),
    ("compensation_work", "obligation_id", "compensation_obligation"),
    ("compensation_work", "run_id", "compensation_run"),
    ("compensation_work", "node_type_id", "compensation_nodetype"),
    ("compensation_attempt", "obligation_id", "compensation_obligation"),
    ("compensation_attempt", "node_type_version_id", "compensation_nodetypeversion"),
    ("compensation_readback", "obligation_id", "compensation_obligation"),
    ("compensation_readback", "attempt_id", "compensation_attempt"),
    ("compensation_attention", "run_id", "compensation_run"),
    ("compensation_attention", "plan_id", "compensation_plan"),
    ("compensation_attention", "obligation_id", "compensation_obligation"),
    ("compensation_attention", "effect_id", "compensation_effect"),
    ("approvals_vote", "interrupt_id", "approvals_interrupt"),
)


def _name(child: str, column: str) -> str:
    return f"{child}_{column}_tenant_fk"


def _add(child: str, column: str, parent: str) -> str:
    return (
        f"alter table {child} add constraint {_name(child, column)} foreign key (tenant_id, {column})"
        f" references {parent} (tenant_id, id) deferrable initially deferred"
    )


def _drop(child: str, column: str) -> str:
    return f"alter table {child} drop constraint {_name(child, column)}"


class Migration(migrations.Migration):
    dependencies = (("compensation", "0001_initial"), ("approvals", "0001_initial"))

    operations = (
        *(migrations.RunSQL(_add(*join), _drop(*join[:2])) for join in JOINS),
        # Hot tables: room for in-place updates (architecture.md, Throughput).
        *(
            migrations.RunSQL(f"alter table {table} set (fillfactor = 70)", f"alter table {table} reset (fillfactor)")
            for table in ("compensation_work", "compensation_obligation", "compensation_run", "compensation_plan")
        ),
    )
