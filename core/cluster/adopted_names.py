"""Knows the names by which a cluster that exists is described: what each may look like at AWS's."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import StringConstraints

from core.cluster.fields import REGION, SUBDOMAIN

Name = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$")]
LabelKey = Annotated[
    str,
    StringConstraints(
        pattern=rf"^({SUBDOMAIN}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{{0,61}}[A-Za-z0-9])?$", max_length=317
    ),
]
# CreateAutoScalingGroup: neither colons nor control characters. With a space at an end nobody means
# it, and a rule or a policy would match no group.
_INSIDE_GROUP, _END_OF_GROUP = r"[^:\x00-\x1f\x7f]", r"[^:\s\x00-\x1f\x7f]"
GROUP = rf"^{_END_OF_GROUP}({_INSIDE_GROUP}{{0,253}}{_END_OF_GROUP})?$"
GroupName = Annotated[str, StringConstraints(pattern=GROUP)]
# Nodes carry it as the value of a label.
NODE_POOL = r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"
NodePoolName = Annotated[str, StringConstraints(pattern=NODE_POOL)]
# Strimzi's Services are called by it and `-kafka-bootstrap`, and a Service has no dots.
KAFKA = r"^[a-z0-9]([a-z0-9-]{0,45}[a-z0-9])?$"
KafkaName = Annotated[str, StringConstraints(pattern=KAFKA)]
NodeGroupName = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z_-]{0,62}$")]
# RFC 1123's label: a namespace has no dots.
Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
Region = Annotated[str, StringConstraints(pattern=REGION, max_length=32)]
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


def unroutable(host: str) -> bool:
    """Say whether no packet of a function's reaches a broker by a host: its own, or nobody's.

    >>> unroutable("127.0.0.1"), unroutable("[::1]"), unroutable("10.0.0.7"), unroutable("b-1.a")
    (True, True, False, False)
    >>> unroutable("127.12.251.1")  # of a twin
    False
    """
    name = host.strip("[]").rstrip(".").lower()
    last = name.rpartition(".")[2]
    if last in {"localhost", "localdomain"}:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        # Resolvers read such a name as an address, of which parts are left out (inet_aton).
        return last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last) is not None or ":" in name
    return (
        (address.is_loopback and not _is_twins(address))
        or address.is_unspecified
        or address.is_link_local
        or address.is_multicast
        or (address.version == 4 and address.is_reserved)
    )


def _is_twins(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Say whether it is where a twin's machines listen (127.1.0.0 on); nobody else's Kafka does."""
    return address.version == 4 and address.packed[1] > 0


def aws_name(eks_cluster: str, namespace: str, name: str, others: Iterable[str]) -> str:
    """Return a name that AWS takes for what is ours for a Kafka, unlike some others.

    >>> aws_name("Shop_Prod", "streaming", "orders.eu", ())
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
