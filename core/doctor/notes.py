"""Says what is no difference from a spec and should be known all the same, a sentence each.

Beside core.doctor.drift's findings; it changes no exit code.
"""

from __future__ import annotations

from collections.abc import Iterator

from core import naming
from core.doctor.drift import Expectation
from core.doctor.snapshot import Snapshot


def unexamined_parts(expected: Expectation, found: Snapshot) -> Iterator[str]:
    """Say of what there was nothing to look at, so that nothing of it was found in order."""
    if found.pods is not None:
        away = sorted(expected.nodes - {pod.node_id for pod in found.pods.values()})
        if away:
            yield (
                f"No pod of Kafka's {'node' if len(away) == 1 else 'nodes'} "
                f"{', '.join(map(str, away))} runs: what it says of readiness gates was not "
                f"looked at. `stillwater health {expected.environment}` says how they do."
            )
    for name, operator in (found.operators or {}).items():
        if operator.down:
            yield (
                f"No pod of Strimzi's operator {name} is available: a broker that is lost does not "
                f"come back."
            )
    if found.operators == {} and expected.environment != naming.TWIN_ENVIRONMENT:
        yield (
            f"No operator of Strimzi's was found that watches {expected.namespace}: a broker that "
            f"is lost does not come back."
        )
    yield from _operator_says(expected, found)
    if found.volumes is not None and len(found.volumes) < expected.disks:
        yield (
            f"{len(found.volumes)} of {expected.disks} volumes of {expected.cluster} are there: "
            f"what becomes of the others with their claims was not looked at."
        )


def _operator_says(expected: Expectation, found: Snapshot) -> Iterator[str]:
    """Say what the operator has not finished; it is at work, so this is no difference."""
    kafka = (found.kafkas or {}).get(expected.cluster)
    if kafka is None:
        return
    if kafka.conditions.not_ready is not None:
        yield (
            f"Strimzi's operator says that Kafka {expected.cluster} is NotReady: "
            f"{kafka.conditions.not_ready}. Until that ends it carries out no change."
        )
    elif not kafka.conditions.generation_observed:
        yield (
            f"Strimzi's operator has not finished with Kafka {expected.cluster} as it is written: "
            f"it rolls brokers now, or waits for something. What it ignores is known afterwards."
        )
