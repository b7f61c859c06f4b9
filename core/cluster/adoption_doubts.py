"""Doubts what a description of a cluster that exists says and nothing forbids."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from core.cluster.adopted_kafka import AdoptedKafka
from core.cluster.adoption import Adoption

# How hosts of Amazon MSK's brokers end.
MSK = (".amazonaws.com", ".amazonaws.com.cn")


def doubts(adopted: Adoption) -> list[str]:
    """Return what is likely to be meant otherwise, a sentence each."""
    return [said for kafka in adopted.kafkas for said in _ways_in(kafka)]


def _ways_in(kafka: AdoptedKafka) -> Iterator[str]:
    """Doubt hosts that the functions may not find, or not for long."""
    hosts = [each.rpartition(":")[0].strip("[]") for each in (kafka.bootstrap or "").split(",")]
    numbers = [host for host in hosts if _is_address(host)]
    if numbers and len(numbers) == len(hosts):
        yield (
            f"bootstrap of Kafka {kafka.title} names addresses alone ({', '.join(numbers)}); where "
            f"these are nodes' they change as nodes are replaced, and the functions then find "
            f"nobody: name a host that follows them, such as a load balancer's."
        )
    if bare := [host for host in hosts if host and "." not in host and ":" not in host]:
        yield (
            f"bootstrap of Kafka {kafka.title} names {', '.join(bare)}, which has no domain, and "
            f"functions complete no names: name its full host name."
        )
    if managed := [host for host in hosts if ".kafka." in host and host.endswith(MSK)]:
        yield (
            f"bootstrap of Kafka {kafka.title} names {', '.join(managed)}, which is Amazon MSK's, "
            f"and a Kafka in Kubernetes is meant: name a listener of its own."
        )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
