"""The commands that set things up and check them: exit codes, stderr, and `--json` (wire.md, Command line)."""

from __future__ import annotations

import io
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit import api_keys
from audit.models import Tenant, User
from compensation.models import Run
from tests.integration.api.conftest import Hall
from tests.support import definitions
from tests.support.callers import differences, row_counts


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue().strip()


def said_json(*arguments: str) -> Any:
    return json.loads(said(*arguments, "--json"))


def refused(code: int, *arguments: str) -> str:
    before = row_counts()
    with pytest.raises(CommandError) as caught:
        call_command(*arguments, stdout=io.StringIO())
    assert caught.value.returncode == code
    assert differences(before, row_counts()) == {}
    return str(caught.value)


def test_from_nothing_to_a_key_that_works(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    slug = f"t-{uuid.uuid4().hex[:8]}"
    assert said_json("create_tenant", slug, "--name", "New") == {"tenant": slug}
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery staple\n"))
    person = said_json("create_user", f"{slug}-anna", "--tenant", slug, "--role", "viewer")
    assert User.objects.get(pk=person["userId"]).check_password("correct horse battery staple")
    said("grant", "--tenant", slug, "--user", f"{slug}-anna", "--role", "service")
    raw = said("create_api_key", "--tenant", slug, "--principal", f"{slug}-anna", "--scope", "runs:read", "--days", "1")
    key = api_keys.authenticate(raw)
    assert (key.tenant.slug, key.owner.username, key.scopes) == (slug, f"{slug}-anna", ["runs:read"])
    assert key.expires_at is not None
    assert raw not in str(key.__dict__)
    roles = set(User.objects.get(pk=person["userId"]).groups.values_list("name", flat=True))
    assert roles == {f"{slug}:viewer", f"{slug}:service"}


def test_what_cannot_be_set_up_is_said_so_and_changes_nothing(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    slug, operator = hall.stage.name, f"{hall.stage.name}-operator"
    assert "already" in refused(1, "create_tenant", slug)
    assert "lower-case" in refused(2, "create_tenant", "No Way")
    assert "no tenant" in refused(2, "grant", "--tenant", "ghost", "--user", operator, "--role", "viewer")
    assert "nobody" in refused(2, "grant", "--tenant", slug, "--user", "ghost", "--role", "viewer")
    assert "already" in refused(1, "create_user", operator, "--tenant", slug)
    monkeypatch.setattr("sys.stdin", io.StringIO("12345\n"))
    assert "password" in refused(1, "create_user", "weak", "--tenant", slug)
    neighbour = f"{hall.them.home.tenant.slug}-viewer"
    told = refused(1, "create_api_key", "--tenant", slug, "--principal", neighbour, "--scope", "runs:read")
    assert "not a member" in told


def test_definitions_are_registered_from_files(hall: Hall, tmp_path: Path) -> None:
    slug = hall.stage.name
    who = ("--tenant", slug, "--as", f"{slug}-service")
    node_type, workflow = tmp_path / "undo.json", tmp_path / "flow.json"
    node_type.write_text(json.dumps(definitions.manual_type("undo")))
    workflow.write_text(json.dumps(definitions.workflow("flow", [definitions.node("a", "undo")])))
    created = {"nodeTypeId": "undo", "version": 1, "created": True}
    assert said_json("register_node_type", str(node_type), *who) == created
    assert said_json("register_node_type", str(node_type), *who) == {**created, "created": False}
    assert said_json("register_workflow", str(workflow), *who)["workflowId"] == "flow"
    workflow.write_text('{"id": "flow", "id": "twice"}')
    assert "/id" in refused(2, "register_workflow", str(workflow), *who)
    workflow.write_text("[]")
    assert "object" in refused(2, "register_workflow", str(workflow), *who)
    workflow.write_text(json.dumps(definitions.workflow("flow", [])))
    assert "/nodes" in refused(1, "register_workflow", str(workflow), *who)
    assert "No such file" in refused(2, "register_workflow", str(tmp_path / "none.json"), *who)


def test_unwind_is_an_operator_request(hall: Hall) -> None:
    """CMP-201, CMP-204."""
    hall.stage.register("undo")
    hall.stage.chain("a", policy={"triggers": ["operator-request"]})
    run, slug = hall.stage.fail("a"), hall.stage.name
    who = ("--tenant", slug, "--as", f"{slug}-operator")
    started = said_json("unwind", str(run.pk), *who)
    assert started["compensationId"] == str(hall.stage.plan(run).pk)
    assert "already has a plan" in refused(1, "unwind", str(run.pk), *who)
    assert "not the id" in refused(2, "unwind", "x", *who)


def test_a_rollup_that_was_changed_by_hand_is_found(hall: Hall) -> None:
    run = hall.unwinding()
    tenant = ("--tenant", hall.stage.name)
    assert said_json("check_rollups", *tenant) == {"checked": 1, "differences": []}
    Run.objects.filter(pk=run.pk).update(compensation_status="completed")
    told = refused(1, "check_rollups", *tenant)
    assert str(run.pk) in told
    assert "completed" in told
    assert Tenant.objects.filter(slug=hall.stage.name).exists()
