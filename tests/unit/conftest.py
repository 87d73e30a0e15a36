"""What the unit tests share."""

from hypothesis import settings

# How long an example takes depends on what else the machine does, and is not what these tests are about.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
