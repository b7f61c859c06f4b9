"""Drafts the description of a surveyed cluster, for `stillwater adopt plan`.

What was not read is left out, with a comment that says so. What `adopt plan` would refuse of it
stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from core.checks.facts import ClusterFacts, pool_names
from core.cluster import adoption
from core.cluster.adopted_names import BOOTSTRAP, QUEUE_URL, aws_name
from core.ground.constants import HOOKS
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.fields import Unknown, known_items, mapping_of
from core.ground.naming import CLUSTER_TAG, operator_account
from core.model.kafka import Kafka
from core.model.nodes import Instance, ScalingGroup

# Tags of groups and machines by which the EKS cluster's name is known: in the key, or the value.
OWNED = "kubernetes.io/cluster/"
CLUSTER_NAMES = ("eks:cluster-name", "eks:eks-cluster-name", "aws:eks:cluster-name")
ARN = re.compile(r"arn:aws[a-z-]*:eks:[a-z0-9-]+:\d{12}:cluster/(\S+)")


def eks_cluster(
    groups: Iterable[ScalingGroup], machines: Iterable[Instance], context: str
) -> str | None:
    """Return the one name that tags have, else that of a context that is the cluster's ARN."""
    every = [*(group.tags or {} for group in groups), *(machine.tags for machine in machines)]
    named = {tags[key] for tags in every for key in CLUSTER_NAMES if key in tags} | {
        key.removeprefix(OWNED) for tags in every for key in tags if key.startswith(OWNED)
    }
    if len(named) == 1:
        return named.pop()
    found = ARN.fullmatch(context)
    return found[1] if found else None


# Also of a local zone (us-west-2-lax-1a) and of Wavelength's (us-east-1-wl1-bos-wlz-1).
ZONE = re.compile(r"([a-z]{2,4}(?:-[a-z]+)+-\d)(?:[a-z]|(?:-[a-z0-9]+)+)")
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
# How an EKS cluster of before access entries knows its callers; and what the functions list.
CONFIG_MAP, POD_SETS = "CONFIG_MAP", "v1"
UNUSABLE = "# It cannot be used as it is: "


def draft(seen: ClusterFacts, context: str) -> str:
    """Return the description as YAML; raise where another Stillwater manages the groups."""
    for group in mapping_of(seen.groups).values():
        if owner := (group.tags or {}).get(CLUSTER_TAG):
            raise StillwaterError(
                f"{group.title} has the tag {CLUSTER_TAG}={owner}: a Stillwater manages it "
                f"already. Leave it to that one, or survey another --namespace."
            )
    if seen.kafkas == ():
        raise StillwaterError(
            "what was found is not Strimzi's, and Stillwater takes over Strimzi's Kafkas alone"
        )
    section = _section(seen, context)
    given = {key: value for key, value in section.items() if value}
    missing = [key for key in ("eks_cluster", "region", "kafkas") if not section[key]]
    noted = [f"{key} could not be read: fill it in." for key in missing]
    noted += [sentence for kafka in known_items(seen.kafkas) for sentence in _ways_in(kafka)]
    noted += _draining(seen, given)
    noted += _too_old(seen)
    noted += _taken_names(seen)
    written = yaml.safe_dump({"adopt": given}, sort_keys=False, allow_unicode=True)
    # What must be filled in is said already.
    unusable = [] if missing else refusals(written)
    comments = "".join(f"# {each}\n" for each in noted)
    comments += "".join(f"{UNUSABLE}{each}\n" for each in unusable)
    return HEAD + comments + written + _operators_noted(seen)


def refusals(written: str) -> list[str]:
    """Return why `adopt plan` would not take a description, a sentence each."""
    try:
        adoption.parse(yaml.safe_load(written))
    except InvalidInput as error:
        return list(error.problems)
    return []


def _section(seen: ClusterFacts, context: str) -> dict[str, Any]:
    groups = mapping_of(seen.groups).values()
    machines = mapping_of(seen.instances).values()
    cluster = eks_cluster(groups, machines, context)
    kafkas: list[dict[str, Any]] = []
    for kafka in known_items(seen.kafkas):
        kafkas.append(_kafka(kafka, cluster, kafkas))
    alone = seen.handlers == () and not any(each.hears_hooks for each in known_items(seen.evictors))
    queues = _queues(seen)
    return {
        "level": "survey",
        "eks_cluster": cluster,
        "region": _region(seen),
        "kafkas": kafkas,
        "scaling_groups": sorted(g.name for g in groups if not g.managed_node_group),
        "managed_node_groups": sorted(
            {g.managed_node_group for g in groups if g.managed_node_group}
        ),
        "node_pools": pool_names(seen),
        # Without a termination handler the functions drain by themselves, from level act on.
        "drainer": "none" if alone and not isinstance(seen.evictors, Unknown) else None,
        "queue_url": queues[0] if len(queues) == 1 and re.fullmatch(QUEUE_URL, queues[0]) else None,
    }


def _queues(seen: ClusterFacts) -> list[str]:
    return sorted(url for each in known_items(seen.handlers) if (url := each.queue_url))


def _kafka(kafka: Kafka, cluster: str | None, before: list[dict[str, Any]]) -> dict[str, Any]:
    said: dict[str, Any] = {"namespace": kafka.namespace, "name": kafka.name}
    if cluster is not None:
        usual = f"{cluster}-{kafka.name}"
        others = [each.get("called", f"{cluster}-{each['name']}") for each in before]
        name = aws_name(cluster, kafka.namespace, kafka.name, others)
        said |= {} if name == usual else {"called": name}
    if (way := kafka.outside) and re.fullmatch(BOOTSTRAP, way.bootstrap):
        said["bootstrap"] = way.bootstrap
        said |= {"authentication": way.authentication} if way.authentication else {}
        said |= {} if way.encrypted else {"tls": False}
    return said


def _ways_in(kafka: Kafka) -> Iterator[str]:
    """Say what must be filled in of how a Kafka is spoken to."""
    way = kafka.outside
    if way is None and kafka.unspoken:
        yield (
            f"{kafka.title}: its listener {', '.join(kafka.unspoken)} cannot serve the functions, "
            "which speak tls and scram-sha-512 alone; add a listener, and name it in bootstrap."
        )
        return
    if way is None:
        yield (
            f"{kafka.title}: no listener was found that is reached from outside the cluster; name "
            f"one in bootstrap, as HOST:PORT."
        )
        return
    if not re.fullmatch(BOOTSTRAP, way.bootstrap):
        yield (
            f"{kafka.title}: its listener at {way.bootstrap} is not HOST:PORT (an address of "
            f"version six stands in brackets); name one in bootstrap."
        )
    if way.authentication:
        yield f"{kafka.title}: name the Secret of a KafkaUser in credentials_secret."
    if way.fenced:
        yield (
            f"{kafka.title}: Strimzi's NetworkPolicy lets only networkPolicyPeers to this "
            f"listener; add the addresses of the functions' subnets."
        )
    if way.own_certificate:
        yield (
            f"{kafka.title}: this listener shows a certificate of its own "
            f"(brokerCertChainAndKey); name the Secret of its authority in authority_secret."
        )


def _draining(seen: ClusterFacts, given: dict[str, Any]) -> Iterator[str]:
    """Say what must be settled of who drains."""
    queues = _queues(seen)
    if queues and "queue_url" not in given:
        yield f"queue_url: which of {', '.join(queues)} it is, as https://sqs.REGION..."
    for each in known_items(seen.evictors):
        if each.hears_hooks:
            yield (
                f"drainer: {each.title} drains what waits in a hook; before level act take it "
                f"away, and set drainer to ours or none."
            )


def _too_old(seen: ClusterFacts) -> Iterator[str]:
    """Say what the functions of levels from watch on ask of a cluster, and it does not have."""
    plane = seen.control_plane
    if not isinstance(plane, Unknown) and plane.authentication == CONFIG_MAP:
        yield (
            f"EKS cluster {plane.name} knows its callers by aws-auth alone. From level watch on "
            "the functions need access entries: `aws eks update-cluster-config --name "
            f"{plane.name} --access-config authenticationMode=API_AND_CONFIG_MAP`. That cannot be "
            "undone, and changes nothing for present callers."
        )
    versions = seen.pod_set_versions
    if not isinstance(versions, Unknown) and versions and POD_SETS not in versions:
        yield (
            f"Its API server serves StrimziPodSets as {', '.join(sorted(versions))} alone. From "
            f"level watch on the functions need {POD_SETS}: first upgrade Strimzi to 0.49."
        )


def _taken_names(seen: ClusterFacts) -> Iterator[str]:
    """Say which groups have hooks of the names that ours get."""
    for group in mapping_of(seen.groups).values():
        for hook in group.hooks:
            if hook.name in HOOKS and not group.managed_node_group:
                yield (
                    f"{group.title} has a hook {hook.name} of its own; give it another name before "
                    f"level act, whose hook would take its place."
                )


def _operators_noted(seen: ClusterFacts) -> str:
    """Return who rolls the Kafkas, where the gate would not know it by itself.

    A comment: the section is none without the gate's image, which only a person can name.
    """
    spaces = {kafka.namespace for kafka in known_items(seen.kafkas)}
    accounts = sorted(
        {
            each.account
            for each in known_items(seen.operators)
            if any(each.watches(space) for space in spaces)
        }
        - {operator_account(space) for space in spaces}
    )
    if not accounts:
        return ""
    return GATE + "".join(f"#    - {account}\n" for account in accounts)


def _region(seen: ClusterFacts) -> str | None:
    nodes = mapping_of(seen.nodes).values()
    found = {zone[1] for node in nodes if (zone := ZONE.fullmatch(node.zone or ""))}
    return found.pop() if len(found) == 1 else None
