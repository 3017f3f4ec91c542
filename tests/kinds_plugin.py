"""Prints, at the end of a run, how many tests of each kind there were: a kind is a folder of tests/."""

from collections import Counter

import pytest

KINDS = ("unit", "integration", "browser", "acceptance", "chaos")
OUTCOMES = ("passed", "failed", "error")


def kind_of(nodeid: str) -> str:
    """`tests/unit/config/test_env.py::test_x` → `unit`."""
    parts = nodeid.split("/", 2)
    return parts[1] if len(parts) > 2 and parts[1] in KINDS else "other"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = Counter(
        (kind_of(report.nodeid), outcome) for outcome in OUTCOMES for report in terminalreporter.stats.get(outcome, [])
    )
    terminalreporter.section("tests per kind")
    for kind in (*KINDS, "other"):
        by_outcome = {outcome: counts[kind, outcome] for outcome in OUTCOMES}
        if kind != "other" or any(by_outcome.values()):
            bad = "".join(f", {number} {name}" for name, number in by_outcome.items() if number and name != "passed")
            terminalreporter.write_line(f"{kind:<12}{by_outcome['passed']:>6} passed{bad}")
