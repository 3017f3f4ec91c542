"""One demo for all acceptance tests of a process that only look at a running one."""

from collections.abc import Iterator

import pytest

from tests.acceptance.demo_process import DemoProcess, running_demo


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoProcess]:
    """A demo that has introduced itself."""
    with running_demo(tmp_path_factory.mktemp("demo")) as started:
        yield started.until_introduced()
