"""A message is a hint: every one of them may be lost, and all that is due is done all the same."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest
from django.db import connection
from kombu import Connection, Queue

from compensation.models import Obligation
from tests.chaos.scene import END_S, Scene
from tests.chaos.verdict import problems_of
from tests.support.processes import Program, Site, url_of
from tests.waiting import eventually

pytestmark = pytest.mark.chaos


def completed(scene: Scene) -> int:
    return Obligation.objects.filter(tenant=scene.home.tenant, state="completed").count()


def test_the_brokers_folder_may_be_wiped_again_and_again(
    site: Site, scene: Scene, relief: AbstractContextManager[Program]
) -> None:
    wiped_at: set[int] = set()

    def wipe() -> None:
        if (done := completed(scene)) not in wiped_at:
            wiped_at.add(done)
            shutil.rmtree(site.broker_folder, ignore_errors=True)

    with relief:
        scene.unwind()
        scene.bring_to_an_end(meanwhile=wipe)
    assert len(wiped_at) > 3
    assert problems_of(scene.home.tenant, scene.sandbox) == []


@pytest.fixture
def own_queue(db: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Queue]]:
    """A site, and its queue on the broker that the settings name, which nobody else uses."""
    url, name = os.environ.get("CELERY_BROKER_URL", ""), f"chaos-{uuid.uuid4().hex}"
    folder = tmp_path_factory.mktemp("site")
    with Site(folder, database_url=url_of(connection.settings_dict), broker_url=url, RECOURSE_QUEUE=name) as site:
        options = {} if url else {"folder": str(site.broker_folder)}
        with Connection(url or "filesystem://", transport_options=options) as broker:
            queue = Queue(name, channel=broker.default_channel)
            site.beat()
            yield site, queue
            queue.delete()


@pytest.mark.broker
def test_messages_lost_with_a_killed_worker_and_on_the_broker_are_not_missed(
    own_queue: tuple[Site, Queue], scene: Scene
) -> None:
    site, queue = own_queue
    scene.unwind()
    worker = site.worker()

    def is_under_way() -> bool:
        scene.answer_questions()
        return completed(scene) > 1

    eventually(is_under_way, timeout=END_S)
    worker.kill()
    queue.purge()
    site.worker()
    scene.bring_to_an_end()
    assert problems_of(scene.home.tenant, scene.sandbox) == []
