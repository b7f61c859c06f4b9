"""Lists every Lambda there is."""

from __future__ import annotations

from collections.abc import Sequence

from core.cluster.operated import Operated
from core.incidents.levels import OWN
from infra.functions.definition import Definition
from infra.functions.health import HEALTH
from infra.functions.interruption import INTERRUPTION
from infra.functions.rotate import ROTATE
from infra.functions.samples import SAMPLES
from infra.functions.slack import SLACK
from infra.functions.sweep import SWEEP
from infra.functions.tick import TICK
from infra.functions.volumes import VOLUMES
from infra.functions.webhook import WEBHOOK

# What carries incidents: infra.functions.loop makes them together.
LOOP = (INTERRUPTION, TICK, SWEEP, ROTATE)
# What stands beside the loop, each by itself: infra.functions.alone.
ALONE = (HEALTH, VOLUMES)
EVERY = (*LOOP, *ALONE, SAMPLES, SLACK, WEBHOOK)


# Of a cluster that exists: what carries its incidents, and λ health beside it.
WATCHING = (INTERRUPTION, TICK, SWEEP)
# A person begins a rotation.
ACTING = (*WATCHING, ROTATE)


def carrying(cluster: Operated) -> Sequence[Definition]:
    """Return the functions that carry incidents at a cluster's level."""
    return ACTING if cluster.acts else WATCHING


def functions(cluster: Operated) -> Sequence[Definition]:
    """Return the functions of a cluster: those for a Slack or a Prometheus, where there is one."""
    if cluster.level != OWN:
        return (*carrying(cluster), HEALTH, *([SLACK] if cluster.slack else []))
    left_out = [] if cluster.slack else [SLACK]
    left_out += [] if cluster.prometheus else [SAMPLES]
    return [each for each in EVERY if each not in left_out]
