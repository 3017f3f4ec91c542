from tests.support.staging import *  # noqa: F403
