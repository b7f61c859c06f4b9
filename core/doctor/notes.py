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
    if found.volumes is not None and len(found.volumes) < expected.disks:
        yield (
            f"{len(found.volumes)} of {expected.disks} volumes of {expected.cluster} are there: "
            f"what becomes of the others with their claims was not looked at."
        )
