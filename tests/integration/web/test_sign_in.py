import pytest
from django.test import Client
from django.urls import reverse

from audit.models import User
from tests.integration.web.visitor import text_of
from tests.support.stage import Stage
from tests.support.world import user_of


def with_password(stage: Stage) -> User:
    user = user_of(stage.home.viewer)
    user.set_password("a long enough one")
    user.save()
    return user


def test_a_person_signs_in_and_lands_in_the_inbox_of_their_tenant(stage: Stage) -> None:
    user, client = with_password(stage), Client()
    answer = client.post("/login/", {"username": user.username, "password": "a long enough one"}, follow=True)
    assert answer.redirect_chain[-1][0] == reverse("web:inbox", args=[stage.home.tenant.slug])
    assert "What needs you" in text_of(answer)


def test_a_wrong_password_says_so_and_keeps_the_name(stage: Stage) -> None:
    user, client = with_password(stage), Client()
    answer = client.post("/login/", {"username": user.username, "password": "wrong"})
    assert answer.status_code == 200
    assert "correct username and password" in text_of(answer)
    assert user.username in answer.content.decode()


def test_signing_in_is_throttled(stage: Stage) -> None:
    user, client = with_password(stage), Client()
    for _ in range(10):
        client.post("/login/", {"username": user.username, "password": "wrong"})
    answer = client.post("/login/", {"username": user.username, "password": "a long enough one"})
    assert answer.status_code == 429
    assert "_auth_user_id" not in client.session


def test_without_a_session_a_page_leads_to_sign_in_and_back(stage: Stage) -> None:
    path = reverse("web:runs", args=[stage.home.tenant.slug])
    answer = Client().get(path)
    assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={path}")


def test_a_part_is_never_replaced_by_the_sign_in_page(stage: Stage) -> None:
    path = reverse("web:runs", args=[stage.home.tenant.slug])
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{path}?status=failed"}
    answer = Client().get(path, headers=headers)
    assert answer["HX-Redirect"].startswith("/login/?next=")
    assert "Password" not in answer.content.decode()


def test_signing_out_takes_a_form(stage: Stage) -> None:
    client = Client()
    client.force_login(user_of(stage.home.viewer), backend="django.contrib.auth.backends.ModelBackend")
    page = client.get("/logout/")
    assert "Sign out?" in text_of(page)
    assert "_auth_user_id" in client.session
    client.post("/logout/")
    assert "_auth_user_id" not in client.session


@pytest.mark.parametrize("name", ["inbox", "runs", "decisions", "workflows", "node_types"])
def test_forms_are_refused_without_a_csrf_token(stage: Stage, name: str) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post("/login/", {"username": "x", "password": "y"}).status_code == 403
    assert client.post(reverse(f"web:{name}", args=[stage.home.tenant.slug])).status_code == 403
