"""Knows the names by which a cluster that exists is described: what each may look like at AWS's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import StringConstraints

from core.cluster.fields import SUBDOMAIN

Name = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$")]
LabelKey = Annotated[
    str,
    StringConstraints(
        pattern=rf"^({SUBDOMAIN}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{{0,61}}[A-Za-z0-9])?$", max_length=317
    ),
]
# CreateAutoScalingGroup: neither colons nor control characters.
GroupName = Annotated[str, StringConstraints(pattern=r"^[^:\x00-\x1f\x7f]{1,255}$")]
NodeGroupName = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z_-]{0,62}$")]
# RFC 1123's label: a namespace has no dots.
Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
Region = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,4}(-[a-z]+)+-[0-9]$", max_length=32)]
# Kafka takes underscores in a host's name, too; an address of version six stands in brackets.
_HOST = r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?"
_SERVER = rf"({_HOST}|\[[0-9A-Fa-f:.]+\]):[0-9]{{1,5}}"
BOOTSTRAP = rf"^{_SERVER}(,{_SERVER})*$"
Bootstrap = Annotated[str, StringConstraints(pattern=BOOTSTRAP)]
# Characters of IAM's own in an ARN: wildcards, and the beginning of a variable.
PATTERN = re.compile(r"[*?]|\$\{")
# A Service's name, or a pod's behind one, as the cluster's own DNS has it.
INSIDE = re.compile(r"[^.]+(\.[^.]+){1,2}\.svc(\..+)?", re.IGNORECASE)
# What EKS calls the groups below its managed node groups.
OF_EKS = re.compile(r"eks-.+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# A termination handler takes a standard queue alone.
QUEUE_URL = r"^https://sqs\.[a-z0-9-]+\.amazonaws\.com/[0-9]{12}/[A-Za-z0-9_-]{1,80}$"
QueueUrl = Annotated[str, StringConstraints(pattern=QUEUE_URL)]
_REGION = r"(?P<region>[a-z]{2}(?:-[a-z]+)+-[0-9])"
_QUEUE = r"(?P<path>/[0-9]{12}/[A-Za-z0-9_-]{1,80})"
# What SQS has called the same queue and still takes: before 2012, FIPS and dual-stack endpoints,
# and an endpoint in a VPC.
_QUEUE_FORMS = tuple(
    re.compile(f"https://{host}{_QUEUE}")
    for host in (
        rf"{_REGION}\.queue\.amazonaws\.com",
        r"(?P<region>queue)\.amazonaws\.com",
        rf"sqs(-fips)?\.{_REGION}\.(amazonaws\.com|api\.aws)",
        rf"vpce-[a-z0-9-]+\.sqs\.{_REGION}\.vpce\.amazonaws\.com",
    )
)
# The longest name of ours has 21 characters more, of the 64 that EventBridge gives a rule.
CALLED, LONGEST_CALLED = re.compile(r"[a-z][a-z0-9-]{1,41}[a-z0-9]"), 43
Called = Annotated[str, StringConstraints(pattern=rf"^{CALLED.pattern}$")]


def called(eks_cluster: str, namespace: str, name: str, others: Iterable[str]) -> str:
    """Return a name that AWS takes for what is ours for a Kafka, unlike some others.

    >>> called("Shop_Prod", "streaming", "orders.eu", ())
    'shop-prod-orders-eu'
    """
    taken = set(others)
    for parts in ((eks_cluster, name), (eks_cluster, namespace, name)):
        short = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
        if CALLED.fullmatch(short) and short not in taken:
            return short
    digest = hashlib.sha256("/".join((eks_cluster, namespace, name)).encode()).hexdigest()[:8]
    short = re.sub(r"[^a-z0-9]+", "-", f"k-{name}".lower())
    return f"{short[: LONGEST_CALLED - len(digest) - 1].rstrip('-')}-{digest}"


def queue_url(written: str) -> str:
    """Return a queue's URL as SQS writes it today; what is none of AWS's stays as it is."""
    for form in _QUEUE_FORMS:
        if found := form.fullmatch(written):
            # Without a region it was of the first one.
            region = found["region"].replace("queue", "us-east-1")
            return f"https://sqs.{region}.amazonaws.com{found['path']}"
    return written
