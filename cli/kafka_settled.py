"""Waits, after Kafka's layer is up, until Strimzi's operator has carried it out.

The engine waits for the Kafka resource alone: for Ready of the generation that it wrote. A changed
KafkaNodePool leaves the Kafka's generation as it is, and what the operator ignores is a Warning
beside Ready=True. So `up` looks at the Kafka, its pools and its pod sets together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from core import naming
from core.availability.operator import (
    KafkaConditions,
    kafka_conditions,
    operator_tasks,
    read_operator,
    remedy,
)
from core.cluster import ClusterSpec
from core.errors import StillwaterError
from handlers.adapters.kubernetes import kafka_pod_in

POLL_SECONDS = 5.0
# The operator writes a pool's observedGeneration before it rolls, and Warnings at the end.
QUIET_SECONDS = 60.0
Item = Mapping[str, Any]
Items = Sequence[Item]
# The operator refuses the resource: waiting does not help.
REFUSED = "InvalidResourceException"


class ReadingApi(Protocol):
    """The request made here."""

    def get(self, path: str, **query: object) -> dict[str, Any]: ...


def wait_until_settled(
    api: ReadingApi,
    spec: ClusterSpec,
    say: Callable[[str], None],
    *,
    quiet_seconds: float = QUIET_SECONDS,
    limit_seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return once the operator has carried out all that was asked of a Kafka.

    Raises StillwaterError with Strimzi's own sentence where it ignored or refused something.
    """
    deadline = clock() + limit_seconds
    settled_since: float | None = None
    told = False
    while True:
        kafka, *others = _look(api, spec)
        found, missing = kafka_conditions(kafka), list(_missing(kafka, *others))
        _raise_what_stays(found, spec)
        if missing:
            settled_since = None
            if clock() >= deadline:
                raise StillwaterError(
                    f"Strimzi's operator has not carried out Kafka {spec.name} within "
                    f"{limit_seconds:.0f} s: {'; '.join(missing)}. See the operator's log, then "
                    f"run `up` again: it goes on waiting."
                )
        else:
            settled_since = clock() if settled_since is None else settled_since
            if clock() - settled_since >= quiet_seconds:
                break
        if not told:
            say("Waiting until Strimzi's operator has carried out what changed.")
            told = True
        sleep(POLL_SECONDS)
    if found.objections:
        raise StillwaterError(
            f"Strimzi's operator did not do all that is asked of Kafka {spec.name}. "
            + " ".join(
                f"{each.message.rstrip('.')}. To mend it, {remedy(each)}; then run `up` again."
                for each in found.objections
            )
        )


def _look(api: ReadingApi, spec: ClusterSpec) -> tuple[Item, Items, Items, Items]:
    namespace = f"namespaces/{spec.kubernetes.namespace}"
    kafkas = f"/apis/kafka.strimzi.io/v1/{namespace}"
    selector = f"{naming.CLUSTER_LABEL}={spec.name}"
    pod_sets = f"/apis/core.strimzi.io/v1/{namespace}/strimzipodsets"
    return (
        api.get(f"{kafkas}/kafkas/{spec.name}"),
        api.get(f"{kafkas}/kafkanodepools", labelSelector=selector)["items"],
        api.get(pod_sets, labelSelector=selector)["items"],
        api.get(f"/api/v1/{namespace}/pods", labelSelector=selector)["items"],
    )


def _raise_what_stays(found: KafkaConditions, spec: ClusterSpec) -> None:
    """Raise what no waiting ends."""
    if found.paused:
        raise StillwaterError(
            f"Kafka {spec.name} is paused, so Strimzi's operator carries out no change. End the "
            f"pause: `kubectl -n {spec.kubernetes.namespace} annotate kafka {spec.name} "
            f"strimzi.io/pause-reconciliation-`, then run `up` again."
        )
    trouble = found.not_ready
    if trouble is not None and trouble.reason == REFUSED and found.generation_observed:
        raise StillwaterError(
            f"Strimzi's operator refuses Kafka {spec.name}: {trouble.message}. Correct the "
            f"description, then run `up` again."
        )


def _missing(kafka: Item, pools: Items, pod_sets: Items, pods: Items) -> Iterator[str]:
    """Yield what the operator has to do, and the pods that are not Ready after it."""
    live = [pod for item in pods if (pod := kafka_pod_in(item)) is not None]
    view = read_operator(kafka, pools, pod_sets)
    tasks = (task.sentence for task in operator_tasks(view, live, (), time.time()))
    yield from (sentence.rstrip(".") for sentence in tasks)
    ready = {pod.name for pod in live if pod.ready}
    yield from (f"pod {name} is not Ready" for name in sorted(view.pods - ready))
    if not (view.kafka.ready or view.kafka.not_ready):
        yield "the operator does not say that the Kafka is Ready"
