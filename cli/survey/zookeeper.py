"""Reads the ZooKeeper pods of Strimzi's Kafkas from an API server into core.survey's facts."""

from __future__ import annotations

import re

from cli.survey.listing import items
from cli.survey.machines import nodes
from cli.survey.objects import labels
from cli.survey.pods import PODS, has_ended, strimzis_pod
from core.survey.kafka_facts import ZooKeeperPod
from infra.eks.api import Api

NAME = re.compile(r".+-zookeeper")


def zookeepers(api: Api, namespace: str | None) -> tuple[ZooKeeperPod, ...]:
    found = [
        strimzis_pod(item)
        for item in items(api, "/api/v1", "pods", namespace, labelSelector=PODS)
        if NAME.fullmatch(labels(item).get("strimzi.io/name", "")) and not has_ended(item)
    ]
    # Most Kafkas have none, and nobody needs to know of nodes then.
    places = nodes(api, found)[0] if found else {}
    return tuple(
        ZooKeeperPod(
            namespace=pod.namespace,
            name=pod.name,
            kafka=pod.kafka,
            ready=pod.ready is True,
            node=pod.node,
            zone=place.zone if (place := places.get(pod.node or "")) else None,
        )
        for pod in found
    )
