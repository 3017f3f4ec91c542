from django.urls import path

from compensation.web.views import (
    approval,
    cancel,
    decisions,
    entry,
    events,
    help_page,
    holds,
    home,
    inbox,
    node_types,
    pause,
    resume,
    retry,
    run,
    runs,
    sign_in,
    skip,
    start,
    substitute,
    terminate,
    workflows,
)

app_name = "web"

RUN = "t/<slug:slug>/runs/<uuid:run_id>"
ENTRY = f"{RUN}/entries/<str:effect_id>"
NODE_TYPE = "t/<slug:slug>/node-types/<str:node_type_id>"

urlpatterns = [
    path("", home.home, name="home"),
    path("login/", sign_in.SignIn.as_view(), name="sign_in"),
    path("logout/", sign_in.SignOut.as_view(), name="sign_out"),
    path("t/<slug:slug>/", inbox.inbox, name="inbox"),
    path("t/<slug:slug>/help/", help_page.help_page, name="help"),
    path("t/<slug:slug>/runs/", runs.runs, name="runs"),
    path(f"{RUN}/", run.run, name="run"),
    path(f"{RUN}/events/", events.events, name="events"),
    path(f"{RUN}/start/", start.start, name="start"),
    path(f"{RUN}/cancel/", cancel.cancel, name="cancel"),
    path(f"{RUN}/pause/", pause.pause, name="pause"),
    path(f"{RUN}/resume/", resume.resume, name="resume"),
    path(f"{RUN}/terminate/", terminate.terminate, name="terminate"),
    path(f"{RUN}/retry/", retry.retry_mint, name="retry_mint"),
    path(f"{ENTRY}/", entry.entry, name="entry"),
    path(f"{ENTRY}/attempts/", entry.attempts, name="attempts"),
    path(f"{ENTRY}/retry/", retry.retry, name="retry"),
    path(f"{ENTRY}/skip/", skip.skip, name="skip"),
    path(f"{ENTRY}/substitute/", substitute.substitute, name="substitute"),
    path("t/<slug:slug>/approvals/<uuid:interrupt_id>/", approval.approval, name="approval"),
    path("t/<slug:slug>/decisions/", decisions.decisions, name="decisions"),
    path("t/<slug:slug>/decisions/<int:seq>/", decisions.decision, name="decision"),
    path("t/<slug:slug>/workflows/", workflows.workflows, name="workflows"),
    path("t/<slug:slug>/workflows/<str:workflow_id>/", workflows.workflow, name="workflow"),
    path("t/<slug:slug>/node-types/", node_types.node_types, name="node_types"),
    path(f"{NODE_TYPE}/", node_types.node_type, name="node_type"),
    path(f"{NODE_TYPE}/hold/", holds.hold_node_type, name="hold_node_type"),
    path(f"{NODE_TYPE}/release/", holds.release_node_type, name="release_node_type"),
    path("t/<slug:slug>/hold/", holds.hold_tenant, name="hold_tenant"),
    path("t/<slug:slug>/release/", holds.release_tenant, name="release_tenant"),
]
