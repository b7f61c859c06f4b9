"""Decides which tags of a user's fit everything that carries them.

A tag given once goes onto some forty kinds of resources, so the smallest limit of them all holds.
Source: AWS's tag naming limits, and of the kinds that have narrower ones IAM (keys do not tell case
apart), the EBS CSI driver, the load balancer controller, the network plugin and Karpenter. By some
of their keys another cluster's controller takes what it finds for its own, and deletes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

TAGS_PER_RESOURCE = 50
TAG_KEY_LENGTH = 128
TAG_VALUE_LENGTH = 256
# Letters, digits and spaces of any language, and + - = . _ : / @; tabs and line breaks are none.
KEY_CHARACTERS = r"[\w +\-=.:/@\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"
# What we, EKS, the volume driver and its provisioner put on what has most of them: a group carries
# its nodes' tags and a node template besides, a volume its claim's names.
TAGS_OF_OURS = 20
_CHARACTERS = re.compile(KEY_CHARACTERS)
# Keys that somebody else writes: AWS, Kubernetes, its controllers, Karpenter, ourselves.
RESERVED_PREFIXES = (
    "aws:",
    "aws-node-termination-handler/",
    "ebs.csi.aws.com/",
    "eks:",
    "elbv2.k8s.aws/",
    "gateway.k8s.aws.",
    "ingress.k8s.aws/",
    "k8s.io/cluster-autoscaler/",
    "karpenter.",
    "kubernetes.io",
    "node.k8s.amazonaws.com/",
    "service.k8s.aws/",
    "stillwater:",
)
RESERVED_KEYS = frozenset({"name", "managed-by", "csivolumename", "csivolumesnapshotname"})


def problems(tags: Mapping[str, str]) -> list[str]:
    """Return a sentence for each of a user's tags that AWS would refuse somewhere."""
    return [*_count(tags), *_twice(tags), *(p for k, v in tags.items() for p in _one(k, v))]


# What a kind takes of a key, and of a value: the narrowest patterns of all the calls of ours.
_EMR_KEY, _DLM_KEY = re.compile(r"[A-Za-z0-9 /_.:=+@-]*"), re.compile(r"[a-zA-Z0-9+,./:;<=_-]*")


def narrow_problems(tags: Mapping[str, str], *, snapshots: bool) -> Iterator[str]:
    """Yield a sentence for each tag that most services take and one of ours does not.

    Sources: TagKey and TagValue of EMR Serverless, which runs the reports; TagKey of Data
    Lifecycle Manager, which takes the snapshots.
    """
    ours = [("key", key, key) for key in tags] + [("value", *each) for each in tags.items()]
    for what, key, text in ours:
        wrong = sorted(set(_EMR_KEY.sub("", text)))
        if wrong:
            yield (
                f"tags has {key!r} with {' '.join(map(repr, wrong))} in its {what}, and EMR "
                f"Serverless, where reports run, takes ASCII letters, digits, spaces and "
                f"+ - = . _ : / @ alone; replace it."
            )
    for key in tags if snapshots else ():
        wrong = sorted(set(_DLM_KEY.sub("", key)) & {" ", "@"})
        if wrong:
            yield (
                f"tags has the key {key!r} with {' '.join(map(repr, wrong))}, and Data Lifecycle "
                f"Manager, which takes the snapshots, takes neither spaces nor @ in a key; "
                f"replace it."
            )


def bill_characters(written: str) -> list[str]:
    """Return the characters of a tag of the bill's that no resource's tag has."""
    return sorted(set(_CHARACTERS.sub("", written)))


def bill_problems(cluster: str | None, pool: str | None) -> Iterator[str]:
    """Yield a sentence for each tag of the bill's that no resource can have."""
    for setting, text in (("bill_cluster_tag", cluster), ("bill_pool_tag", pool)):
        wrong = bill_characters(text or "")
        if wrong:
            yield (
                f"{setting} has {' '.join(map(repr, wrong))}, and tags have letters, digits, "
                "spaces and + - = . _ : / @ alone; write it as on your resources"
            )


def doubts(tags: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for a tag that AWS takes and volumes get otherwise.

    Source: the EBS CSI driver is told of its tags as KEY=VALUE, with commas between.
    """
    for key in tags:
        if "=" in key:
            yield (
                f"tags has the key {key!r}, and the volume driver reads a key up to its first =. "
                f"Volumes get the tag {key.partition('=')[0]!r} there; replace it."
            )


def _count(tags: Mapping[str, str]) -> Iterator[str]:
    most = TAGS_PER_RESOURCE - TAGS_OF_OURS
    if len(tags) > most:
        yield (
            f"tags has {len(tags)} tags. AWS allows {TAGS_PER_RESOURCE} on a resource. "
            f"{TAGS_OF_OURS} are for Stillwater and Kubernetes; leave {most} or fewer"
        )


def _twice(tags: Mapping[str, str]) -> Iterator[str]:
    known: dict[str, str] = {}
    for key in tags:
        other = known.setdefault(key.lower(), key)
        if other != key:
            yield (
                f"tags has {other} and {key}, which IAM takes for one key and refuses; remove one"
            )


def _one(key: str, value: str) -> Iterator[str]:
    lowered = key.lower()
    if lowered in RESERVED_KEYS or lowered.startswith(RESERVED_PREFIXES):
        yield f"tag {key} belongs to AWS, Kubernetes or this project; choose another key"
    if value.lower().startswith("aws:"):
        yield (
            f"tag {key} has the value {value[:40]!r}, and AWS keeps what begins with aws: for "
            f"itself, in values too; change it"
        )
    if not 1 <= len(key) <= TAG_KEY_LENGTH:
        yield (
            f"tag {key[:20]!r} has a key of {len(key)} characters, and AWS allows 1 to "
            f"{TAG_KEY_LENGTH}; shorten it"
        )
    if len(value) > TAG_VALUE_LENGTH:
        yield (
            f"tag {key} has a value of {len(value)} characters, and AWS allows "
            f"{TAG_VALUE_LENGTH}; shorten it"
        )
    for what, text in (("key", key), ("value", value)):
        wrong = sorted(set(_CHARACTERS.sub("", text)))
        if wrong:
            yield (
                f"tag {key!r} has {' '.join(map(repr, wrong))} in its {what}, and AWS allows "
                f"letters, digits, spaces and + - = . _ : / @; replace it"
            )
