from hypothesis import settings

# The same examples on every machine and run; a time limit per example only measures how busy the machine is.
settings.register_profile("attnlib", derandomize=True, deadline=None)
settings.load_profile("attnlib")
