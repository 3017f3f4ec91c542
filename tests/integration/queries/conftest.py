from tests.integration.api.conftest import *  # noqa: F403
