"""Judges releases of Strimzi: which API they read, on which Kubernetes they start, what is rolled.

Sources: Strimzi 0.49's release notes (the API v1 beside v1beta2), 1.0's (v1 alone), 0.45.1's (it
starts on Kubernetes 1.33).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.checks.facts import ClusterFacts, parts_of, pods_of
from core.checks.finding import (
    Finding,
    Weight,
    broker_may_die,
    listing,
    not_judged,
    producer_may_stall,
    rule,
    worth_knowing,
)
from core.ground.fields import Unknown, known_items
from core.ground.window import clock
from core.model.kafka import Kafka
from core.model.workloads import Operator

V1, BEFORE_V1 = "v1", "v1beta2"
RENEWED_BEFORE_DAYS, DAY_SECONDS = 30, 86_400
FIRST_WITH_V1, FIRST_WITHOUT_BEFORE = (0, 49, 0), (0, 52, 0)
# Kubernetes says more of its version since 1.33 than an older operator can read.
FIRST_ON_KUBERNETES, KUBERNETES_MINOR = (0, 45, 1), 33


@rule("kafkas")
def api_versions(seen: ClusterFacts) -> Iterator[Finding]:
    """Find operators that ask for an API that is not served, and clusters of before v1."""
    served = seen.kafka_versions
    if not isinstance(served, Unknown) and served:
        for each in _watching(seen):
            read = _read_by(each)
            if read and not read & served:
                yield producer_may_stall(
                    "strimzi-api",
                    each.title,
                    f"Strimzi {_release(each)} reads its resources as {listing(read)}, and the API "
                    f"server serves them as {listing(served)} alone. It reconciles nothing, and a "
                    "lost pod does not come back",
                    "apply the CRDs of the operator's release (Helm leaves them as they are)",
                )
    versions = seen.pod_set_versions
    if (
        known_items(seen.kafkas)
        and not isinstance(versions, Unknown)
        and versions
        and V1 not in versions
    ):
        yield worth_knowing(
            "strimzi-before-v1",
            "Strimzi",
            f"the API server serves its resources as {listing(versions)} alone, as before Strimzi "
            f"0.49. Strimzi 1.0 reads {V1} alone. Stillwater's levels from watch on need it",
            "upgrade to a release from 0.49 to 0.51, convert the resources to v1, then go on to "
            "1.0",
        )


def _watching(seen: ClusterFacts) -> list[Operator]:
    kafkas = known_items(seen.kafkas)
    return [
        each for each in known_items(seen.operators) if any(each.looks_after(k) for k in kafkas)
    ]


def _read_by(operator: Operator) -> frozenset[str]:
    """Return the versions of its resources that an operator can read; none: nobody can tell."""
    if operator.version is None:
        return frozenset()
    if operator.version >= FIRST_WITHOUT_BEFORE:
        return frozenset({V1})
    if operator.version >= FIRST_WITH_V1:
        return frozenset({V1, BEFORE_V1})
    return frozenset({BEFORE_V1})


def _release(operator: Operator) -> str:
    return ".".join(map(str, operator.version or ()))


@rule("kafkas", "operators", "control_plane")
def kubernetes(seen: ClusterFacts) -> Iterator[Finding]:
    """Find operators that do not start on the control plane's version, or on the next one."""
    plane = seen.control_plane
    if isinstance(plane, Unknown) or (minor := re.match(r"1\.(\d+)", plane.version)) is None:
        return
    here = int(minor[1]) >= KUBERNETES_MINOR
    for each in _watching(seen):
        if each.version is None or each.version >= FIRST_ON_KUBERNETES or each.knows_kubernetes:
            continue
        yield Finding(
            "strimzi-kubernetes",
            Weight.PRODUCER if here else Weight.ADVICE,
            each.title,
            f"Strimzi {_release(each)} does not start on Kubernetes 1.{KUBERNETES_MINOR} or newer, "
            f"whose version it cannot read, "
            + (
                f"and this is {plane.version}: once its pod restarts, a lost broker's does not "
                f"come back"
                if here
                else f"and this is {plane.version}: an upgrade of the control plane stops it"
            ),
            "upgrade Strimzi to 0.45.1 or newer, or tell it the version in "
            "STRIMZI_KUBERNETES_VERSION",
        )


@rule("kafkas")
def authorities(seen: ClusterFacts) -> Iterator[Finding]:
    """Name Kafkas whose certificates' authority nobody renews by itself."""
    for kafka in known_items(seen.kafkas):
        if kafka.own_authorities:
            yield worth_knowing(
                "own-authority",
                kafka.title,
                f"Strimzi does not make its {' and '.join(kafka.own_authorities)} "
                "(generateCertificateAuthority is false), and never renews it. After its end no "
                "client trusts a broker that starts",
                "know its last day, and who renews it",
            )


@rule("kafkas")
def certificates(seen: ClusterFacts) -> Iterator[Finding]:
    """Find certificates that end before anybody has renewed them, or whose end is not shown."""
    for kafka in known_items(seen.kafkas):
        ours = "clusterCa" not in kafka.own_authorities
        renewed = (
            "Strimzi renews its authority in its next maintenance window, if its operator runs"
        )
        for name, end in kafka.authority_ends.items():
            # Strimzi has the first half of its time to renew, maintenance windows included.
            days = kafka.renewal_days / 2 if ours else RENEWED_BEFORE_DAYS
            remedy = (
                f"{renewed}: see its log"
                if ours
                else "renew it as Strimzi documents for CAs of your own"
            )
            yield from _ending(kafka, f"the authority of listener {name}", end, days, remedy, seen)
        for name, end in kafka.own_certificate_ends.items():
            remedy = "renew it in the Secret that brokerCertChainAndKey names"
            yield from _ending(
                kafka, f"the certificate of listener {name}", end, RENEWED_BEFORE_DAYS, remedy, seen
            )
        if "clientsCa" in kafka.own_authorities:
            yield not_judged(
                "certificate-end",
                kafka.title,
                "its clients' authority is one of your own, and stands in a Secret that this "
                "command does not read: when it ends was not judged",
                f"`kubectl get secret {kafka.name}-clients-ca-cert -n {kafka.namespace} -o "
                f"jsonpath='{{.data.ca\\.crt}}' | base64 -d | openssl x509 -enddate -noout` shows "
                f"it",
            )


def _ending(
    kafka: Kafka, what: str, end: float | None, days: float, remedy: str, seen: ClusterFacts
) -> Iterator[Finding]:
    if end is None:
        yield not_judged(
            "certificate-end",
            kafka.title,
            f"status.listeners of the Kafka shows no certificate that can be read: when {what} "
            f"ends was not judged",
            "look at the certificate yourself (`openssl s_client` against the listener)",
        )
    elif end < seen.read_at + days * DAY_SECONDS:
        over = end <= seen.read_at
        yield broker_may_die(
            "certificate-ends",
            kafka.title,
            f"{what} {'has ended' if over else 'ends'} at {clock(end)}, and it was not renewed: "
            "from then on clients and brokers that connect trust no broker",
            remedy,
        )


@rule("kafkas", "pools", "pods")
def shrinking(seen: ClusterFacts) -> Iterator[Finding]:
    """Name Kafkas that have more brokers than their pools want."""
    for kafka in known_items(seen.kafkas):
        mine = parts_of(seen.pools, kafka)
        # Of a pool that names no roles its pods are brokers.
        wanted = sum(pool.replicas for pool in mine if not pool.roles or "broker" in pool.roles)
        there = sum(pod.broker for pod in pods_of(seen, kafka))
        if 0 < wanted < there:
            yield worth_knowing(
                "shrinking",
                kafka.title,
                f"there are {there} brokers and its node pools want {wanted}: Strimzi removes the "
                f"last ones as soon as no partition is on them",
                "move their partitions away, or set the replicas back, before any node leaves",
            )


@rule("kafkas", "pods")
def images(seen: ClusterFacts) -> Iterator[Finding]:
    """Name Kafkas whose pods run different images: their operator rolls the rest."""
    for kafka in known_items(seen.kafkas):
        found = {pod.image for pod in pods_of(seen, kafka) if pod.image}
        if len(found) > 1:
            yield worth_knowing(
                "image-skew",
                kafka.title,
                f"its pods run {listing(found)}: an upgrade is under way or was left half-way, "
                f"and the operator rolls the rest at any moment",
                "let it end, or find out why the operator does not go on, before any node leaves",
            )
