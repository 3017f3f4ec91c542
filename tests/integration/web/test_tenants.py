import uuid

from audit.models import Decision, Membership, User
from audit.principals import Principal
from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import Visitor, text_of
from tests.support.stage import Stage
from tests.support.world import house, user_of

PAGES = ("inbox", "help", "runs", "decisions", "workflows", "node_types", "hold_tenant", "release_tenant")


def outsider() -> Principal:
    return house(f"other-{uuid.uuid4().hex[:8]}").lead


def test_another_tenants_pages_are_the_same_404_as_those_of_none(unwinding: Stage) -> None:
    """CMP-606: not there, or not there for you, is one answer, and the tenant's record does not hear of it."""
    run = unwinding.fail("a", "b")
    recorded = Decision.objects.filter(tenant=unwinding.home.tenant).count()
    stranger = Visitor(unwinding.home.tenant.slug, outsider())
    nowhere = Visitor("no-such-tenant", outsider())
    entry = unwinding.entry(run, "a").effect_id
    for name, args in [
        *((page, ()) for page in PAGES),
        *(
            (page, (run.pk,))
            for page in ("run", "events", "start", "cancel", "pause", "resume", "terminate", "retry_mint")
        ),
        *((page, (run.pk, entry)) for page in ("entry", "attempts", "retry", "skip", "substitute")),
    ]:
        theirs, none = stranger.get(name, *args), nowhere.get(name, *args)
        assert (theirs.status_code, none.status_code) == (404, 404), name
        assert theirs.content == none.content, name
        assert stranger.post(name, *args).status_code in (404, 405), name
    assert Decision.objects.filter(tenant=unwinding.home.tenant).count() == recorded


def test_ones_own_tenant_answers_a_foreign_run_as_a_random_one(unwinding: Stage, visit: Visit) -> None:
    """CMP-606, 607."""
    run = unwinding.fail("a", "b")
    person = outsider()
    visitor = Visitor(person.tenant.slug, person)
    foreign, random = visitor.get("run", run.pk), visitor.get("run", uuid.uuid4())
    assert (foreign.status_code, random.status_code) == (404, 404)
    assert foreign.content == random.content
    assert visit(unwinding.home.viewer).get("entry", run.pk, "0" * 64).status_code == 404


def test_a_member_without_view_meets_a_403_page_everywhere(unwinding: Stage) -> None:
    """CMP-605: belonging grants nothing."""
    run = unwinding.fail("a", "b")
    user = User.objects.create(username=f"{unwinding.name}-idle")
    Membership.objects.create(tenant=unwinding.home.tenant, user=user)
    idle = Visitor(unwinding.home.tenant.slug, Principal(tenant=unwinding.home.tenant, user=user))
    for name, args in [*((page, ()) for page in PAGES), ("run", (run.pk,))]:
        answer = idle.get(name, *args)
        assert answer.status_code == 403, name
        assert "may not see anything" in text_of(answer), name


def test_the_switcher_shows_only_ones_own_tenants_with_name_and_colour(stage: Stage, visit: Visit) -> None:
    other = house(f"other-{uuid.uuid4().hex[:8]}", colour="orange").tenant
    page = visit(stage.home.viewer).get("inbox").content.decode()
    assert stage.home.tenant.name in page
    assert other.name not in page
    Membership.objects.create(tenant=other, user=user_of(stage.home.viewer))
    page = visit(stage.home.viewer).get("inbox").content.decode()
    assert other.name in page
    assert 'data-colour="orange"' in page


def test_home_goes_to_the_tenant_that_was_looked_at_last(stage: Stage, visit: Visit) -> None:
    other = house(f"aaa-{uuid.uuid4().hex[:8]}").tenant
    Membership.objects.create(tenant=other, user=user_of(stage.home.viewer))
    visitor = visit(stage.home.viewer)
    assert visitor.client.get("/")["Location"] == f"/t/{other.slug}/"
    visitor.get("runs")
    assert visitor.client.get("/")["Location"] == f"/t/{stage.home.tenant.slug}/"
