"""Decides which DNS names a spec may not give: AWS, EC2 or the cluster's own DNS answers for them.

Sources: Route 53's CreateHostedZone ("You can't create a hosted zone for a top-level domain"; names
under amazonaws.com are reserved by AWS), the VPC user guide on EC2's own host names, the Kubernetes
DNS specification (CoreDNS answers for cluster.local, in the cluster and nowhere else).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.cluster.spec import ClusterSpec

# Of the generic ones, those that people have; every country's has two letters.
_TOP_LEVEL = (
    "aero app arpa aws biz bot cloud co com coop dev edu gov info int io jobs mil mobi museum name "
    "net online org page pro shop site store tech tel travel xyz"
)
TOP_LEVEL = frozenset(_TOP_LEVEL.split())
OF_AWS = ("amazonaws.com", "amazonaws.com.cn", "api.aws", "on.aws", "aws.dev")
OF_THE_CLUSTER = ("cluster.local", "svc")


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each name that would be refused, or answered by somebody else."""
    zone = spec.load_balancer.private_zone
    named = {"kafka.listener.advertised_host": spec.kafka.listener.advertised_host}
    if zone is not None:
        named = {"load_balancer.private_zone": zone, **named}
    for key, name in named.items():
        why = _why(name.lower(), spec.region)
        if why is not None:
            yield (
                f"{key} is {name}, and {why}; choose a domain of your own, such as kafka.internal."
            )
            # The other of the two stands in the same domain.
            return
    if zone is not None and (zone.lower() in TOP_LEVEL or re.fullmatch(r"[a-zA-Z]{2}", zone)):
        yield (
            f"load_balancer.private_zone is {zone}, a top-level domain, for which Route 53 makes "
            f"no hosted zone; name one below it."
        )


def _why(name: str, region: str) -> str | None:
    of_ec2 = ("ec2.internal", f"{region}.compute.internal", "compute.internal")
    for domains, why in (
        (OF_AWS, "names under {0} are AWS's: Route 53 makes no zone of them"),
        (OF_THE_CLUSTER, "{0} is answered for by the cluster's own DNS, and outside by nobody"),
        (of_ec2, "{0} is where EC2 names its instances: a zone of it hides the nodes' own names"),
    ):
        for domain in domains:
            if f".{name}".endswith(f".{domain}"):
                return why.format(domain)
    return None
