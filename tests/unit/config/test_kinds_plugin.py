"""The count of tests per kind that closes every run."""

import pytest

from tests.kinds_plugin import kind_of


@pytest.mark.parametrize(
    ("nodeid", "kind"),
    [
        ("tests/unit/config/test_env.py::test_x", "unit"),
        ("tests/chaos/test_kill.py::test_x[a/b]", "chaos"),
        ("tests/test_loose.py::test_x", "other"),
        ("docs/test_x.py::test_x", "other"),
    ],
)
def test_a_kind_is_a_folder_of_tests(nodeid: str, kind: str) -> None:
    assert kind_of(nodeid) == kind
