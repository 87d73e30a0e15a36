"""What all tests share."""

import gc

pytest_plugins = ["tests.measuring", "tests.servers.fixtures", "tests.servers.plugin", "tests.model.plugin"]


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through the thousands of collected tests again and again."""
    gc.collect()
    gc.freeze()
