"""Judges what a service mesh puts beside Kafka: proxies that end before the broker does.

Source: Istio's and Linkerd's sidecars, which end with their pod's first signal unless they are
init containers that restart.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed, every_kafka, pods_of
from core.survey.finding import Finding, listing, producer_may_stall
from core.unknown import of


def meshes(seen: Surveyed) -> Iterator[Finding]:
    """Find brokers that lose their network first when they stop, or once they start again."""
    for kafka in every_kafka(seen):
        pods = pods_of(seen, kafka)
        if beside := [pod for pod in pods if pod.proxies]:
            yield producer_may_stall(
                "mesh-sidecar",
                kafka.title,
                f"{listing(pod.name for pod in beside)} have a proxy beside Kafka "
                f"({listing(name for pod in beside for name in pod.proxies)}), which ends at the "
                f"pod's first signal: the broker then reaches no controller, hands over no leader, "
                f"and is killed when its grace is over",
                "keep Kafka out of the mesh, or have the mesh inject native sidecars",
            )
        later = [
            pod.name
            for pod in pods
            if pod.namespace in of(seen.injected_namespaces)
            and not pod.proxies
            and not pod.outside_meshes
            # A native sidecar is seen by nobody here.
            and not pod.native_proxy
        ]
        if later:
            yield producer_may_stall(
                "mesh-later",
                kafka.title,
                f"namespace {kafka.namespace} has a mesh put a proxy into new pods, and "
                f"{listing(later)} have none: they get one when they start again, and brokers with "
                f"and without it may not understand each other",
                "say sidecar.istio.io/inject: 'false' (Linkerd: linkerd.io/inject: disabled) in "
                "the pods' template",
            )
