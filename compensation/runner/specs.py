"""Node type versions as the runner reads them. A version never changes, so it is read once per process."""

import uuid
from functools import lru_cache

from compensation.domain.node_type import NodeTypeSpec
from compensation.models import NodeTypeVersion


@lru_cache(maxsize=4096)
def spec_of(version_id: uuid.UUID) -> NodeTypeSpec:
    """The typed view of one immutable node type version."""
    return NodeTypeSpec.from_document(NodeTypeVersion.objects.get(pk=version_id).document)
