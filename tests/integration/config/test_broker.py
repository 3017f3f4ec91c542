"""The folder as a broker, without workers: many hands in it at once."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty

import pytest
from kombu import Connection

import config.celery  # noqa: F401 - gives the filesystem scheme to our transport
from config import broker

MESSAGES = 150


def message(number: int) -> dict[str, object]:
    properties = {"delivery_tag": str(number), "delivery_info": {"exchange": "", "routing_key": "q"}}
    return {"body": "", "headers": {"number": number}, "properties": properties}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "broker"


@pytest.fixture
def channel(folder: Path) -> Iterator[Callable[[], broker.Channel]]:
    """Opens channels, each on a connection of its own, as other processes would have."""
    connections: list[Connection] = []

    def opened() -> broker.Channel:
        connections.append(Connection("filesystem://", transport_options={"folder": str(folder)}))
        channel = connections[-1].channel()
        assert isinstance(channel, broker.Channel)
        return channel

    yield opened
    for connection in connections:
        connection.release()


def test_each_message_of_many_writers_reaches_exactly_one_of_many_readers(
    channel: Callable[[], broker.Channel],
) -> None:
    def write(first: int) -> None:
        writer = channel()
        for number in range(first, first + MESSAGES):
            writer._put("q", message(number))

    def read(_: int) -> list[int]:
        reader, found = channel(), []
        while (writers_are_busy := not all(writer.done() for writer in writers)) or reader._size("q"):
            try:
                found.append(reader._get("q")["headers"]["number"])
            except Empty:
                assert writers_are_busy or not reader._size("q")
        return found

    with ThreadPoolExecutor(6) as pool:
        writers = [pool.submit(write, first * MESSAGES) for first in range(3)]
        found = [number for numbers in pool.map(read, range(3)) for number in numbers]
        for writer in writers:
            writer.result()
    assert sorted(found) == list(range(3 * MESSAGES))


def test_messages_come_in_the_order_of_sending(channel: Callable[[], broker.Channel]) -> None:
    one = channel()
    for number in range(20):
        one._put("q", message(number))
    assert [one._get("q")["headers"]["number"] for _ in range(20)] == list(range(20))


def test_queues_do_not_mix_and_purging_one_leaves_the_other(channel: Callable[[], broker.Channel]) -> None:
    one = channel()
    one._put("q", message(1))
    one._put("q.other", message(2))
    assert (one._size("q"), one._size("q.other")) == (1, 1)
    assert one.queue_purge("q") == 1
    with pytest.raises(Empty):
        one._get("q")
    assert one._get("q.other")["headers"]["number"] == 2


def test_a_folder_that_is_missing_is_an_empty_queue_and_comes_back_with_the_next_message(
    channel: Callable[[], broker.Channel], folder: Path
) -> None:
    one = channel()
    with pytest.raises(Empty):
        one._get("q")
    one._put("q", message(1))
    shutil.rmtree(folder)
    assert one._size("q") == 0
    one._put("q", message(2))
    assert one._get("q")["headers"]["number"] == 2


def test_a_folder_named_like_a_message_costs_no_more_than_a_log_line(
    channel: Callable[[], broker.Channel], folder: Path
) -> None:
    (folder / "0.q.msg").mkdir(parents=True)
    one = channel()
    one._put("q", message(1))
    assert one._get("q")["headers"]["number"] == 1
