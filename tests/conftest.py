"""What all tests share."""

pytest_plugins = ["tests.measuring", "tests.servers.fixtures", "tests.servers.plugin", "tests.model.plugin"]
