"""A field for JSON whose bytes matter."""

import json
from typing import Any

from django.db import models

from compensation.domain.canonical import canonical


class CanonicalJSONField(models.TextField[Any, Any]):
    """JSON kept as its RFC 8785 text: what is stored is byte for byte what was digested, shown and sent.

    ``jsonb`` would rewrite numbers and could not give the same bytes back.
    """

    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, *_: object) -> Any:
        return None if value is None else json.loads(value)

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else canonical(value).decode()

    def to_python(self, value: Any) -> Any:
        return value
