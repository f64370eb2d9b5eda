from hypothesis import HealthCheck, settings

# The same examples on every machine and run; a time limit per example only measures how busy the machine is.
# Nothing fails for being slow: other machines may be at work on the same cores.
settings.register_profile(
    "full", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("full"), max_examples=20)  # for make check
settings.load_profile("full")
