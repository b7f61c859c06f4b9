"""Judges how clients from outside come to brokers where no target group leads them there.

Sources: Strimzi's listeners of type ingress, cluster-ip and nodeport; ingress controllers' TLS
passthrough, and the ConfigMaps by which they send whole TCP ports on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.survey.facts import Surveyed
from core.survey.finding import Finding, Weight, listing, not_judged, producer_may_stall
from core.survey.kafka_facts import Kafka
from core.survey.tool_facts import IngressController
from core.unknown import Unknown, of

INGRESS, BEHIND_A_PROXY = "ingress", ("ingress", "cluster-ip")


def ingresses(seen: Surveyed) -> Iterator[Finding]:
    """Find proxies by which all clients of a Kafka come in, and which one node takes along."""
    if isinstance(seen.ingress_controllers, Unknown):
        return
    for kafka in of(seen.kafkas):
        named = {each.kind: each.name for each in kafka.listeners if each.kind in BEHIND_A_PROXY}
        streams = {each.title: _streams(each, kafka) for each in seen.ingress_controllers}
        if named:
            yield from _listeners(kafka, named, seen.ingress_controllers)
        elif any(streams.values()):
            sending = [each for each in seen.ingress_controllers if streams[each.title]]
            services = {service for each in sending for service in streams[each.title]}
            yield from _proxies(kafka, f"Service {listing(services)}", sending, sure=True)


def _streams(proxy: IngressController, kafka: Kafka) -> list[str]:
    """Return the Services of a Kafka's brokers that a proxy sends whole TCP ports to."""
    return [
        service
        for namespace, service in proxy.streams
        if namespace == kafka.namespace and service.startswith(f"{kafka.name}-kafka-")
    ]


def _listeners(
    kafka: Kafka, named: Mapping[str, str], found: Sequence[IngressController]
) -> Iterator[Finding]:
    by_ingress = INGRESS in named
    if by_ingress and not found:
        yield not_judged(
            "ingress-unknown",
            kafka.title,
            f"clients of listener {named[INGRESS]} come by an ingress controller, and none was "
            f"found: what becomes of them when a node leaves was not judged",
            "look at that controller yourself",
        )
    yield from _proxies(kafka, listing(named.values()), found, sure=by_ingress)
    serving = [each for each in found if not each.down]
    deaf = [each for each in serving if each.passes_tls is False]
    if by_ingress and deaf and len(deaf) == len(serving):
        yield producer_may_stall(
            "ingress-tls",
            kafka.title,
            f"{listing(each.title for each in deaf)} does not hand TLS on, and listener "
            f"{named[INGRESS]} needs it: nobody comes in by it",
            "start it with TLS passthrough (nginx: --enable-ssl-passthrough)",
        )


def _proxies(
    kafka: Kafka, whose: str, found: Sequence[IngressController], *, sure: bool
) -> Iterator[Finding]:
    """Find proxies of which none serves, or one pod does; `sure`: clients come by no other way."""
    serving = [each for each in found if not each.down]
    if found and not serving:
        yield producer_may_stall(
            "ingress-down",
            kafka.title,
            f"no pod of {listing(each.title for each in found)} is available, by which clients "
            f"of {whose} come in",
            "look at its pods",
        )
    elif serving and all(each.replicas < 2 for each in serving):
        yield Finding(
            "ingress-single",
            Weight.PRODUCER if sure else Weight.ADVICE,
            kafka.title,
            f"clients of {whose} come by "
            f"{listing(each.title for each in serving)}, which is one pod: with its node all "
            f"clients of all brokers are cut off",
            "run two of it or more, with a PodDisruptionBudget, off the nodes of Kafka",
        )
