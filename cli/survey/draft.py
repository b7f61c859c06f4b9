"""Drafts the description of a surveyed cluster, for `stillwater adopt plan`.

What was not read is left out, with a comment that says so; nothing is guessed.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from core.cluster.adopted_names import QUEUE_URL
from core.errors import StillwaterError
from core.naming import CLUSTER_TAG
from core.survey.facts import Surveyed, Unread, of
from core.survey.kafka_facts import Kafka

ARN = re.compile(r"arn:aws[a-z-]*:eks:[a-z0-9-]+:\d{12}:cluster/(\S+)")
OWNED = "kubernetes.io/cluster/"
# Also of a local zone (us-west-2-lax-1a) and of Wavelength's (us-east-1-wl1-bos-wlz-1).
ZONE = re.compile(r"([a-z]{2}(?:-[a-z]+)+-\d)(?:[a-z]|(?:-[a-z0-9]+)+)")
HEAD = """\
# A cluster that exists, as `stillwater survey` found it. Look it through, fill in what is missing,
# then ask what the next level would add: stillwater adopt plan FILE
"""
GATE = """\
# From level gate on, with the gate's image: who is not asked before it rolls Kafka's pods.
#  eviction_gate:
#    image: ...
#    operators:
"""


def draft(seen: Surveyed, context: str) -> str:
    """Return the description as YAML; raise where another Stillwater manages the groups."""
    groups = {} if isinstance(seen.groups, Unread) else seen.groups
    for group in groups.values():
        if owner := (group.tags or {}).get(CLUSTER_TAG):
            raise StillwaterError(
                f"Auto Scaling group {group.name} has the tag {CLUSTER_TAG}={owner}: a Stillwater "
                f"manages it already. Leave it to that one, or survey another --namespace."
            )
    queues = sorted(url for each in of(seen.handlers) if (url := each.queue_url))
    nodes = {} if isinstance(seen.nodes, Unread) else seen.nodes
    section: dict[str, Any] = {
        "level": "survey",
        "eks_cluster": _cluster(seen, context),
        "region": _region(seen),
        "kafkas": [_kafka(kafka) for kafka in of(seen.kafkas)],
        "scaling_groups": sorted(g.name for g in groups.values() if not g.managed_node_group),
        "managed_node_groups": sorted(
            {g.managed_node_group for g in groups.values() if g.managed_node_group}
        ),
        "node_pools": sorted({node.node_pool for node in nodes.values() if node.node_pool}),
        # Without a termination handler the functions drain by themselves, from level act on.
        "drainer": "none" if seen.handlers == () else None,
        "queue_url": queues[0] if len(queues) == 1 and re.fullmatch(QUEUE_URL, queues[0]) else None,
    }
    given = {key: value for key, value in section.items() if value}
    missing = [key for key in ("eks_cluster", "region", "kafkas") if not section[key]]
    unsaid = "".join(f"# {key} could not be read: fill it in.\n" for key in missing)
    for kafka in of(seen.kafkas):
        if kafka.outside is None:
            unsaid += (
                f"# {kafka.title}: no listener was found that is reached from outside the cluster; "
                f"name one in bootstrap, as HOST:PORT.\n"
            )
        elif kafka.outside.authentication:
            unsaid += f"# {kafka.title}: name the Secret of a KafkaUser in credentials_secret.\n"
    if queues and "queue_url" not in given:
        unsaid += f"# queue_url: which of {', '.join(queues)} it is, as https://sqs.REGION...\n"
    written = yaml.safe_dump({"adopt": given}, sort_keys=False, allow_unicode=True)
    return HEAD + unsaid + written + _operators_noted(seen)


def _kafka(kafka: Kafka) -> dict[str, Any]:
    said: dict[str, Any] = {"namespace": kafka.namespace, "name": kafka.name}
    if way := kafka.outside:
        said["bootstrap"] = way.bootstrap
        said |= {"authentication": way.authentication} if way.authentication else {}
        said |= {} if way.encrypted else {"tls": False}
    return said


def _operators_noted(seen: Surveyed) -> str:
    """Return who rolls the Kafkas, where the gate would not know it by itself.

    A comment: the section is none without the gate's image, which only a person can name.
    """
    spaces = {kafka.namespace for kafka in of(seen.kafkas)}
    accounts = sorted(
        {
            each.account
            for each in of(seen.operators)
            if any(each.watches(space) for space in spaces)
        }
        - {f"system:serviceaccount:{space}:strimzi-cluster-operator" for space in spaces}
    )
    if not accounts:
        return ""
    return GATE + "".join(f"#    - {account}\n" for account in accounts)


def _cluster(seen: Surveyed, context: str) -> str | None:
    """Return the EKS cluster's name by the groups' tags, else by a context that is its ARN."""
    groups = {} if isinstance(seen.groups, Unread) else seen.groups
    named = {group.eks_cluster for group in groups.values() if group.eks_cluster} | {
        key.removeprefix(OWNED)
        for group in groups.values()
        for key in group.tags or {}
        if key.startswith(OWNED)
    }
    if len(named) == 1:
        return named.pop()
    found = ARN.fullmatch(context)
    return found[1] if found else None


def _region(seen: Surveyed) -> str | None:
    nodes = {} if isinstance(seen.nodes, Unread) else seen.nodes
    found = {zone[1] for node in nodes.values() if (zone := ZONE.fullmatch(node.zone or ""))}
    return found.pop() if len(found) == 1 else None
