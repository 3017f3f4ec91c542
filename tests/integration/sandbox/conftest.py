"""Sandboxes for the tests of the sandbox itself."""

from collections.abc import Iterator

import pytest

from tests.support.sandbox import SandboxProcess


@pytest.fixture
def sandbox() -> Iterator[SandboxProcess]:
    """One of its own for a test that looks at the whole ledger, injects faults, or kills it."""
    with SandboxProcess() as running:
        yield running


@pytest.fixture(scope="module")
def shared() -> Iterator[SandboxProcess]:
    """One for all tests of a file that use keys of their own and leave no fault behind."""
    with SandboxProcess() as running:
        yield running
