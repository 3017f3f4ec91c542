"""One sandbox for each test: starting it takes less than cleaning one up would."""

from collections.abc import Iterator

import pytest

from tests.support.sandbox import SandboxProcess


@pytest.fixture
def sandbox() -> Iterator[SandboxProcess]:
    with SandboxProcess() as running:
        yield running
