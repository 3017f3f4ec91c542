"""People calling the API over HTTP with their keys, and what the database holds before and after."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.apps import apps
from django.test import Client

from audit import provisioning
from audit.provisioning import KEY_SCOPES
from tests.support.world import House, user_of

OURS: Final = ("audit", "approvals", "compensation")


@dataclass(frozen=True)
class Reply:
    """An answer: `json` parsed, `headers` without regard to case."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def code(self) -> str:
        """The error code of a refusal."""
        return str(self.json["error"])

    @property
    def pointers(self) -> list[str]:
        """Where the faults of a `validation_error` are."""
        return [problem["pointer"] for problem in self.json["details"]["errors"]]


@dataclass
class Caller:
    """Somebody with a key; `""` is somebody without one."""

    key: str
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def get(self, path: str, **headers: str) -> Reply:
        return self.call("GET", path, None, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        return self.call("POST", path, body, **headers)

    def put(self, path: str, body: Any = None, **headers: str) -> Reply:
        return self.call("PUT", path, body, **headers)

    def call(self, method: str, path: str, body: Any, **headers: str) -> Reply:
        """`headers` by name with underscores: `Idempotency_Key="k"`."""
        raw = body if isinstance(body, (bytes, str)) else b"" if body is None else json.dumps(body)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        media_type = sent.pop("Content-Type", "application/json")
        if self.key:
            sent.setdefault("Authorization", f"Bearer {self.key}")
        answer = self.client.generic(method, path, raw, content_type=media_type, headers=sent)
        return Reply(status=answer.status_code, headers=answer.headers, text=answer.content.decode())


@dataclass(frozen=True)
class Callers:
    """One caller for each role that works through the API, and the admin of the settings."""

    home: House
    service: Caller
    operator: Caller
    lead: Caller
    approver: Caller
    second_approver: Caller
    auditor: Caller
    admin: Caller

    def key(self, person: str, scopes: Iterable[str], **how: Any) -> Caller:
        """A further key of one of the house's people."""
        owner = user_of(getattr(self.home, person))
        return Caller(provisioning.issue_key(tenant=self.home.tenant, owner=owner, scopes=scopes, **how))


ADMIN_SCOPES: Final = ("runs:read", "workflows:write", "compensation:terminate")


def callers(home: House) -> Callers:
    """The people of a house with the keys of wire.md's table."""
    people = {role: (role, scopes) for role, scopes in KEY_SCOPES.items()}
    people["second_approver"] = ("second_approver", KEY_SCOPES["approver"])
    people["admin"] = ("admin", frozenset(ADMIN_SCOPES))
    made = {
        name: Caller(provisioning.issue_key(tenant=home.tenant, owner=user_of(getattr(home, person)), scopes=scopes))
        for name, (person, scopes) in people.items()
    }
    return Callers(home=home, **made)


def row_counts() -> dict[str, int]:
    """The rows of every table of ours."""
    models = (model for label in OURS for model in apps.get_app_config(label).get_models())
    return {model._meta.db_table: model._default_manager.count() for model in models}


def differences(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """By how many rows each table grew, where it did."""
    return {table: after[table] - count for table, count in before.items() if after[table] != count}
