"""Lists every Lambda there is."""

from __future__ import annotations

from collections.abc import Sequence

from core.cluster.operated import Operated
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


def functions(cluster: Operated) -> Sequence[Definition]:
    """Return the functions of a cluster: those for a Slack or a Prometheus, where there is one."""
    left_out = [] if cluster.slack else [SLACK]
    left_out += [] if cluster.prometheus else [SAMPLES]
    return [each for each in EVERY if each not in left_out]
