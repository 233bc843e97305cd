"""Properties have no deadline: how fast a machine is, is not what they are about."""

from hypothesis import settings

settings.register_profile("tooltrail", deadline=None)
settings.load_profile("tooltrail")
