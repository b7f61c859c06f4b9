"""Describes a cluster that exists, by what it is called there.

Beside ClusterSpec, which describes a cluster that Stillwater makes. `stillwater survey` writes it,
and a person fills in what cannot be seen from outside. What is likely meant otherwise is doubted.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from core import timing
from core.cluster.adopted_names import (
    CALLED,
    INSIDE,
    OF_EKS,
    PATTERN,
    Bootstrap,
    Called,
    GroupName,
    KafkaName,
    LabelKey,
    Name,
    Namespace,
    NodeGroupName,
    NodePoolName,
    QueueUrl,
    Region,
    unroutable,
)
from core.cluster.fields import (
    Frozen,
    KubernetesName,
    SecurityGroupId,
    SubnetId,
    named_twice,
    visible,
)
from core.cluster.images import EvictionGate
from core.cluster.limits import ARN_CHARACTERS, BUCKET, MOST_MATCHED_CHARACTERS, RESERVED_STARTS
from core.cluster.operation import Alerts, Maintenance, Slack, Timings
from core.cluster.reading import Locate, Place, validate
from core.cluster.spec import LAST_PORT, Inconsistent
from core.ground import regions
from core.ground.errors import InvalidInput


class Section(BaseModel):
    """A section of a description that is not a ClusterSpec's, nor in its reference."""

    model_config = Frozen.model_config

    _all_is_seen = field_validator("*", mode="before")(visible)


class AdoptedKafka(Section):
    """One Kafka resource of Strimzi's, by where it is."""

    namespace: Namespace
    """Its namespace."""
    name: KafkaName
    """Its name there."""
    bootstrap: Bootstrap | None = None
    """HOST:PORT of a listener that the functions can reach; from `watch` on."""
    credentials_secret: KubernetesName | None = None
    """The Secret of a KafkaUser, in the same namespace, which the functions speak as."""
    authentication: Literal["none", "tls", "scram-sha-512"] = "none"
    """How that listener authenticates clients."""
    tls: bool = True
    """Whether it is encrypted."""
    authority_secret: KubernetesName | None = None
    """The Secret with the brokers' authority; without it, Strimzi's own."""
    called: Called | None = None
    """The prefix of every name; without it, EKS cluster and Kafka: `shop-orders`."""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


def unspeakable(kafka: AdoptedKafka) -> Iterator[str]:
    """Yield why the functions could not speak to a Kafka."""
    for server in (kafka.bootstrap or "").split(","):
        host = server.rpartition(":")[0]
        # A Service of Strimzi's own, without what follows the namespace.
        short = host.startswith(f"{kafka.name}-kafka-") and host.endswith(f".{kafka.namespace}")
        if short or INSIDE.fullmatch(host):
            yield (
                f"bootstrap of Kafka {kafka.title} names {server}, which only the cluster knows; "
                "name a listener that the functions' subnets reach"
            )
    if kafka.authentication == "tls" and not kafka.tls:
        yield (
            f"Kafka {kafka.title} has authentication tls and tls false, and certificates need TLS; "
            "set tls to true, or authentication to scram-sha-512 or none"
        )
    if kafka.authentication == "none" and kafka.credentials_secret is not None:
        yield (
            f"Kafka {kafka.title} has a credentials_secret that authentication none does not use; "
            "set authentication to tls or scram-sha-512, or remove credentials_secret"
        )
    if kafka.authentication != "none" and kafka.credentials_secret is None:
        yield (
            f"Kafka {kafka.title} asks for {kafka.authentication} and has no "
            f"credentials_secret; name the Secret of a KafkaUser in its namespace"
        )


# Lambda's VpcConfig takes so many of each.
MOST_SUBNETS, MOST_SECURITY_GROUPS = 16, 5
NAMED_ONCE = ("scaling_groups", "managed_node_groups", "node_pools", "subnets", "security_groups")
# What is left for names as JSON says them of the 4 KiB of a function's environment, and for groups
# of the 10,240 characters of a role's policy. Held against AWS's limits in
# tests/unit/stacks/test_aws_gate.py.
MOST_TOLD_CHARACTERS = 2500
MOST_GRANTED_CHARACTERS = 6300


class Level(StrEnum):
    """How much Stillwater may do, least first."""

    SURVEY = "survey"
    WATCH = "watch"
    GATE = "gate"
    ACT = "act"


class Drainer(StrEnum):
    """Whose program drains a node that terminates."""

    THEIRS = "theirs"
    OURS = "ours"
    NONE = "none"


class Adoption(Section):
    """A cluster that exists: the keys below `adopt`."""

    level: Level = Level.SURVEY
    """How far it is today; `adopt plan` says what the next level adds."""
    eks_cluster: Name
    """The EKS cluster's name."""
    region: Region
    """Its region."""
    kafkas: tuple[AdoptedKafka, ...] = Field(min_length=1)
    """The Kafkas in it that are meant; others are left alone."""
    scaling_groups: tuple[GroupName, ...] = ()
    """Auto Scaling groups that hold their nodes."""
    managed_node_groups: tuple[NodeGroupName, ...] = ()
    """EKS's managed node groups that do."""
    node_pools: tuple[NodePoolName, ...] = ()
    """Karpenter's or Auto Mode's NodePools that do."""
    pool_label: LabelKey | None = None
    """The node label that tells pools apart, where there is one."""
    drainer: Drainer = Drainer.THEIRS
    """Whose termination handler drains: `theirs`, `ours` (for held machines alone), or `none`: the
    functions cordon nodes and evict their pods.
    """
    queue_url: QueueUrl | None = None
    """The queue of their termination handler."""
    subnets: Annotated[tuple[SubnetId, ...], Field(max_length=MOST_SUBNETS)] = ()
    """Where the functions stand: subnets from which the API server and that listener are reached,
    and AWS's own addresses; from `watch` on.
    """
    security_groups: Annotated[
        tuple[SecurityGroupId, ...], Field(max_length=MOST_SECURITY_GROUPS)
    ] = ()
    """The functions' security groups; the API server and the brokers must admit them."""
    eviction_gate: EvictionGate | None = None
    """Who answers evictions of Kafka's pods, from `gate` on, one for each Kafka; at `act` it may
    be left out.
    """
    slack: Slack | None = None
    """The Slack channel of incidents; without it only the ledger has them."""
    alerts: Alerts = Alerts(enabled=False)
    """The topic of pages; made by this project, or one that exists."""
    maintenance: Maintenance | None = None
    """When what AWS has scheduled may be done ahead of it."""
    timings: Timings = Timings()
    """Every timeout; [the rules between them](timings.md)."""

    @property
    def gated(self) -> bool:
        """Say whether an eviction gate answers."""
        return self.eviction_gate is not None and self.level in {Level.GATE, Level.ACT}

    @property
    def evicts(self) -> bool:
        """Say whether the functions drain nodes themselves."""
        return self.level is Level.ACT and self.drainer is Drainer.NONE

    @property
    def installs_handler(self) -> bool:
        """Say whether a termination handler of ours stands beside what is theirs."""
        return self.level is Level.ACT and self.drainer is Drainer.OURS

    def called(self, kafka: AdoptedKafka) -> str:
        """Return what everything of ours for a Kafka is called by."""
        return kafka.called or f"{self.eks_cluster}-{kafka.name}"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if problems := list(self._problems()):
            raise Inconsistent(problems)
        return self

    def _problems(self) -> Iterator[str]:
        for title in named_twice(kafka.title for kafka in self.kafkas):
            yield f"adopt.kafkas names {title} twice; keep one entry per Kafka"
        yield from (each.sentence.removesuffix(".") for each in timing.check(self))
        for name in self.scaling_groups:
            if PATTERN.search(name):
                yield (
                    f"adopt.scaling_groups names {name}, which IAM would read as a pattern of "
                    f"names; write each group's own name"
                )
        for kind in NAMED_ONCE:
            for name in named_twice(getattr(self, kind)):
                yield f"adopt.{kind} names {name} twice; keep it once"
        if self.queue_url is not None and self.queue_url.split(".")[1] != self.region:
            yield (
                f"adopt.queue_url is in {self.queue_url.split('.')[1]}, and adopt.region is "
                f"{self.region}, where the functions are; correct one of them"
            )
        yield from self.alerts.elsewhere(self.region)
        yield from self._nowhere()
        if not (self.scaling_groups or self.managed_node_groups or self.node_pools):
            yield (
                "adopt names no machines; list the scaling_groups, managed_node_groups or "
                "node_pools that hold Kafka's nodes"
            )
        if self.drainer is not Drainer.THEIRS and self.queue_url:
            yield (
                f"adopt.queue_url is the queue of their termination handler, and adopt.drainer is "
                f"{self.drainer}; remove one of them"
            )
        if self.level is not Level.SURVEY:
            yield from self._unreachable()

    def _nowhere(self) -> Iterator[str]:
        if (partition := regions.refusal(self.region)) is not None:
            yield f"adopt.region: {partition.removesuffix('.')}"
        for kafka in self.kafkas:
            for server in (kafka.bootstrap or "").split(","):
                if server and not 0 < int(server.rpartition(":")[2]) <= LAST_PORT:
                    yield (
                        f"bootstrap of Kafka {kafka.title} names {server}, and ports are 1 to "
                        f"{LAST_PORT}; correct it"
                    )
                if server and unroutable(server.rpartition(":")[0]):
                    yield (
                        f"bootstrap of Kafka {kafka.title} names {server}, which is not the "
                        "address of a broker; name a listener that the functions' subnets reach"
                    )

    def _unreachable(self) -> Iterator[str]:
        for kafka in self.kafkas:
            if kafka.bootstrap is None:
                yield (
                    f"adopt.level is {self.level} and Kafka {kafka.title} has no bootstrap; name a "
                    f"listener as HOST:PORT"
                )
            yield from unspeakable(kafka)
        for key in ("subnets", "security_groups"):
            if not getattr(self, key):
                yield (
                    f"adopt.level is {self.level} and adopt.{key} is empty; name those from which "
                    f"the functions reach the API server and Kafka"
                )
        yield from self._name_problems()
        if self.level is Level.GATE and self.eviction_gate is None:
            yield (
                "adopt.level is gate and adopt.eviction_gate is not set; name the gate's image in "
                "it: `docker build --target gate` makes one"
            )
        if self.level is Level.ACT:
            yield from self._drainer_problems()

    def _too_long(self) -> Iterator[str]:
        if (length := len(json.dumps(self.matched)) - 2) > MOST_MATCHED_CHARACTERS:
            yield (
                f"adopt names groups that take {length} characters of a rule of EventBridge's, and "
                f"{MOST_MATCHED_CHARACTERS} are left there; split the description, a Kafka each"
            )
        granted = sum(ARN_CHARACTERS + len(json.dumps(name)) for name in self.scaling_groups)
        if self.level is Level.ACT and granted > MOST_GRANTED_CHARACTERS:
            yield (
                f"adopt names {len(self.scaling_groups)} scaling_groups, whose ARNs take {granted} "
                f"characters of a role's policy, and {MOST_GRANTED_CHARACTERS} are left there; "
                f"split the description, a Kafka each"
            )
        for kafka in self.kafkas:
            if (length := self._names_length(kafka)) > MOST_TOLD_CHARACTERS:
                yield (
                    f"the names of Kafka {kafka.title} take {length} characters of a function's "
                    f"environment. {MOST_TOLD_CHARACTERS} are left; split the description, a Kafka "
                    "each, or name fewer bootstrap servers"
                )

    @property
    def matched(self) -> list[str | dict[str, str]]:
        """The groups as a rule of EventBridge's names them.

        EKS calls a managed node group's eks-<name>-<a random id>; those get no hooks of ours.
        """
        managed = () if self.level is Level.ACT else self.managed_node_groups
        return [*self.scaling_groups, *({"prefix": f"eks-{name}-"} for name in managed)]

    def _names_length(self, kafka: AdoptedKafka) -> int:
        """Return how many characters a function's environment has of names, at most."""
        secrets = (kafka.credentials_secret, kafka.authority_secret, self.queue_url)
        once = [*self.scaling_groups, *self.managed_node_groups, *(s or "" for s in secrets)]
        # By both Karpenter's tags and Auto Mode's.
        pools = [*self.node_pools] * 2
        servers = (kafka.bootstrap or "").split(",")
        called = [self.called(kafka)] * 6
        named = [kafka.name, *[kafka.namespace] * 2, *[self.eks_cluster] * 2]
        every = (*once, *pools, *servers, *called, *named)
        # Quoted, with a comma, in a text that is quoted itself.
        return sum(len(json.dumps(json.dumps(each))) for each in every)

    def _drainer_problems(self) -> Iterator[str]:
        if self.drainer is Drainer.THEIRS and self.queue_url is None:
            yield (
                "adopt.level is act and adopt.queue_url is not set; name the queue of your "
                "termination handler, or set adopt.drainer to ours or none"
            )
        if len(self.kafkas) > 1:
            yield (
                f"adopt.level is act and {len(self.kafkas)} Kafkas share the description; give "
                "each Kafka its own description and groups"
            )
        for name in self.scaling_groups:
            if OF_EKS.fullmatch(name):
                yield (
                    f"adopt.scaling_groups names {name}, a group of a managed node group, where "
                    "EKS takes no hooks of others; name it in managed_node_groups"
                )
        if not self.scaling_groups:
            yield (
                "adopt.level is act and adopt.scaling_groups is empty; use level gate for "
                "machines of EKS and Karpenter, which take no hooks of others"
            )

    def _name_problems(self) -> Iterator[str]:
        names = {kafka.title: self.called(kafka) for kafka in self.kafkas}
        for name in named_twice(names.values()):
            both = " and ".join(title for title, called in names.items() if called == name)
            yield (
                f"Kafkas {both} would both have the name {name}; give one of them another `called`"
            )
        for title, name in names.items():
            if not CALLED.fullmatch(name):
                yield (
                    f"resources for Kafka {title} would have the name {name!r}. AWS's names take 3 "
                    "to 43 of a-z, 0-9 and -; give it another `called`"
                )
            for start, what in RESERVED_STARTS.items():
                if what == BUCKET and name.startswith(start):
                    yield (
                        f"resources for Kafka {title} would have the name {name}, and AWS keeps "
                        f"{start!r} at the beginning of {what} for itself; give it another `called`"
                    )
        yield from self._too_long()
        if self.scaling_groups and self.pool_label is None:
            yield (
                "adopt.scaling_groups needs pool_label, the label that only their nodes have; "
                "name it"
            )


def parse(raw: object, locate: Locate = lambda _place, _sentence: "") -> Adoption:
    """Validate a description with its one key `adopt`; raise InvalidInput with every problem."""
    section = raw.get("adopt") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(section, Mapping):
        problem = "`adopt` has no settings here; `stillwater survey --adopt FILE` writes them."
        raise InvalidInput([locate(("adopt",), problem) + problem])
    if others := sorted(str(key) for key in raw if key != "adopt"):
        problem = (
            f"In addition to `adopt` it has {', '.join(others)}; a cluster is adopted or made by "
            "Stillwater, not both: keep one of them per file."
        )
        raise InvalidInput([locate((), problem) + problem])

    def placed(place: Place, sentence: str) -> str:
        # What two keys say together has no place of its own; the sentence names the keys.
        return locate(("adopt", *place) if place else (), sentence)

    return validate(Adoption, section, placed)


def shared_parts(described: Mapping[str, Adoption]) -> list[str]:
    """Return a sentence per Kafka or group that stands in two descriptions, by the files' names."""
    owner: dict[tuple[str, ...], str] = {}
    problems = []
    for file, each in described.items():
        for part in _parts(each):
            if part in owner and owner[part] != file:
                problems.append(
                    f"{part[0]} {part[-1]} is in {owner[part]} and in {file}; leave it in one of "
                    f"them."
                )
            owner.setdefault(part, file)
    return problems


def _parts(each: Adoption) -> Iterator[tuple[str, ...]]:
    """Yield what may belong to one description alone, with where its name holds."""
    for kafka in each.kafkas:
        yield ("Kafka", each.region, each.eks_cluster, kafka.title)
    for group in each.scaling_groups:
        yield ("Auto Scaling group", each.region, group)
    for kind, names in (
        ("Managed node group", each.managed_node_groups),
        ("NodePool", each.node_pools),
    ):
        for name in names:
            yield (kind, each.region, each.eks_cluster, name)


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
            f"bootstrap of Kafka {kafka.title} names only addresses ({', '.join(numbers)}). "
            "Addresses of nodes change when nodes are replaced; name a host that follows them, "
            "such as a load balancer's."
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
