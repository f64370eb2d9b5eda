from hypothesis import HealthCheck, settings

# The same examples on every machine and run; a time limit per example only measures how busy the machine is.
# Nothing fails for being slow: other machines may be at work on the same cores.
settings.register_profile(
    "attnlib", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("attnlib")
