"""Names for the principals of the record, looked up once for a whole page."""

from collections.abc import Iterable, Mapping

from audit.models import ApiKey, User

ENGINE = "system:engine"


def names_of(labels: Iterable[str | None]) -> Mapping[str, str]:
    """A name for each label (``user:7``, ``api_key:<id>``, ``system:engine``); two queries for any number of them."""
    wanted = {label for label in labels if label}
    users = User.objects.filter(pk__in=_ids(wanted, "user"))
    keys = ApiKey.objects.filter(pk__in=_ids(wanted, "api_key")).select_related("owner")
    return {
        ENGINE: "the engine",
        **{f"user:{user.pk}": str(user) for user in users},
        **{f"api_key:{key.pk}": f"{key.name} (key of {key.owner})" for key in keys},
    }


def _ids(labels: Iterable[str], kind: str) -> list[str]:
    return [label.partition(":")[2] for label in labels if label.startswith(f"{kind}:")]
