"""Tests start as from a terminal, whoever started them, and take the time a busy machine needs."""

import signal

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# A background job of a script, as CI may be, inherits SIGINT ignored, and nohup adds SIGHUP. What
# tests start would inherit both, and no Ctrl-C of theirs would arrive.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(_number, signal.SIG_DFL)

# A busy machine is late, not wrong: an example that took 200 ms on it shows nothing.
LATE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples each time: what is red is red for everybody, whatever they changed.
settings.register_profile("usual", LATE, max_examples=50, derandomize=True)
# Whoever changes what a property holds looks longer: pytest --hypothesis-profile many PATH
settings.register_profile("many", LATE, max_examples=1_000)
settings.load_profile("usual")

_constants_of_ours = providers._get_local_constants


def _constants() -> providers.Constants:
    """Return what Hypothesis also draws: constants of all code of ours that is imported by now.

    They would make other examples of every change and every order, and each process reads all code
    for them; so whoever looks longer has them alone.
    """
    usual = settings.get_current_profile_name() == "usual"
    return providers._local_constants if usual else _constants_of_ours()


providers._get_local_constants = _constants
