"""Every path of the API (wire.md, Endpoints)."""

from django.urls import URLPattern, path, re_path

from compensation.api import approvals, discovery, endpoint, plans, record, registry, runs, tenant

RUN = "v1/runs/<str:run_id>"
PLAN = f"{RUN}/compensation"

urlpatterns: list[URLPattern] = [
    path(".well-known/openwop", discovery.WellKnown.as_view()),
    path("v1/openapi.json", discovery.OpenApi.as_view()),
    path("v1/docs", discovery.docs_page, name="api-docs"),
    path("v1/workflows", registry.Workflows.as_view()),
    path("v1/workflows:validate", registry.WorkflowValidation.as_view()),
    path("v1/workflows/<str:workflow_id>", registry.Workflow.as_view()),
    path("v1/node-types", registry.NodeTypes.as_view()),
    path("v1/node-types/<str:node_type_id>:hold", registry.NodeTypeHold.as_view()),
    path("v1/node-types/<str:node_type_id>:release", registry.NodeTypeRelease.as_view()),
    path("v1/node-types/<str:node_type_id>", registry.NodeType.as_view()),
    path("v1/runs", runs.Runs.as_view()),
    path(RUN, runs.RunDetail.as_view()),
    path(f"{RUN}/facts", runs.Facts.as_view()),
    path(f"{RUN}/cancel", runs.Cancel.as_view()),
    path(f"{RUN}/events", runs.Events.as_view()),
    path(f"{RUN}/events/poll", runs.Events.as_view()),
    path(f"{RUN}/interrupts/<str:node_id>", approvals.NodeInterrupt.as_view()),
    path(PLAN, plans.Plan.as_view()),
    path(f"{PLAN}/<str:effect_id>/attempts", plans.Attempts.as_view()),
    path(f"{PLAN}:preview", plans.Preview.as_view()),
    path(f"{PLAN}:start", plans.Start.as_view()),
    path(f"{PLAN}:retry", plans.Retry.as_view()),
    path(f"{PLAN}:skip", plans.Skip.as_view()),
    path(f"{PLAN}:substitute", plans.Substitute.as_view()),
    path(f"{PLAN}:terminate", plans.Terminate.as_view()),
    path(f"{PLAN}:pause", plans.Pause.as_view()),
    path(f"{PLAN}:resume", plans.Resume.as_view()),
    path("v1/interrupts", approvals.Interrupts.as_view()),
    path("v1/interrupts/<str:interrupt_id>", approvals.InterruptDetail.as_view()),
    path("v1/decisions", record.Decisions.as_view()),
    path("v1/tenant:hold", tenant.TenantHold.as_view()),
    path("v1/tenant:release", tenant.TenantRelease.as_view()),
    path("v1/credentials", tenant.Credentials.as_view()),
    path("v1/credentials/<str:ref>", tenant.Credential.as_view()),
    path("v1/egress", tenant.Egress.as_view()),
    re_path(r"^v1(/|:|$)", endpoint.Unknown.as_view()),
    re_path(r"^\.well-known(/|$)", endpoint.Unknown.as_view()),
]
