"""What a person can be allowed to do, and the roles that bundle it. The one list of both."""

from typing import Final

PERMISSIONS: Final[dict[str, str]] = {
    "view": "See that it exists and how it stands",
    "see_inputs": "See inputs, outputs and frozen parameters",
    "approve_inverse": "Approve or reject an inverse action",
    "approve_waive": "Approve or reject leaving something not undone",
    "retry": "Retry an inverse action",
    "skip": "Skip an inverse action",
    "substitute": "Substitute another inverse action",
    "terminate": "Terminate an unwind",
    "start": "Start an unwind by hand",
    "pause": "Pause and resume an unwind",
    "bulk": "Recover many at once",
    "hold": "Hold and release a node type or the whole tenant",
    "register": "Register workflows",
    "create_run": "Create runs",
    "report_facts": "Report facts",
    "cancel_run": "Cancel runs",
    "manage_node_types": "Register node types",
    "manage_credentials": "Manage credentials",
    "manage_egress": "Manage the egress allow-list",
    "manage_members": "Manage members, grants and API keys",
    "read_audit": "Read the record",
    "export_audit": "Export the record",
}

_READ: Final = frozenset({"view", "see_inputs"})
_OPERATE: Final = _READ | {"retry", "start", "pause", "bulk", "cancel_run"}
_RECORD: Final = frozenset({"read_audit", "export_audit"})

ROLES: Final[dict[str, frozenset[str]]] = {
    "viewer": frozenset({"view"}),
    "approver": _READ | {"approve_inverse", "approve_waive"},
    "operator": _OPERATE,
    "lead": _OPERATE | {"skip", "substitute", "terminate", "hold"},
    "auditor": _READ | _RECORD,
    "admin": frozenset(
        {"view", "register", "manage_node_types", "manage_credentials", "manage_egress", "manage_members", "hold"}
    ),
    "service": _READ | {"register", "manage_node_types", "create_run", "report_facts", "cancel_run"},
}

# The API scope a key must also carry for each permission; a permission that is absent needs no scope beyond its key.
SCOPE_OF: Final[dict[str, str]] = {
    "view": "runs:read",
    "see_inputs": "runs:read",
    "approve_inverse": "approvals:respond",
    "approve_waive": "approvals:respond",
    "retry": "compensation:retry",
    "skip": "compensation:skip",
    "substitute": "compensation:substitute",
    "terminate": "compensation:terminate",
    "start": "compensation:start",
    "pause": "compensation:start",
    "bulk": "compensation:retry",
    "hold": "compensation:terminate",
    "register": "workflows:write",
    "create_run": "runs:create",
    "report_facts": "facts:write",
    "cancel_run": "runs:cancel",
    "manage_node_types": "workflows:write",
    "manage_credentials": "workflows:write",
    "manage_egress": "workflows:write",
    "manage_members": "workflows:write",
    "read_audit": "audit:read",
    "export_audit": "audit:export",
}

SCOPES: Final[frozenset[str]] = frozenset({*SCOPE_OF.values(), "manifest:read", "actions:propose", "webhooks:manage"})
