"""The one way a time is written on the wire."""

from datetime import UTC, datetime


def wire_time(at: datetime | None) -> str | None:
    """RFC 3339 in UTC with milliseconds and `Z`; None stays None."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
