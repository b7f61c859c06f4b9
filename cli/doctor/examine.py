"""Reads every part of a live cluster at once for the doctor, and shows the diagnosis.

Beside the cluster stand the parts of the account that a replacement needs: free addresses, quotas,
support, AWS Health, zones that are shifted away. The judges are those of `stillwater survey`. What
could not be read is named in the diagnosis: a line per finding for people, JSON for programs.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from cli.answers import answer_or_reason, then, then_any, unknown_answer
from cli.aws import PATIENCE, Clients, pages, require_login
from cli.doctor.account import Found, KubernetesCluster, LiveAccount
from cli.survey import account, kafka, tools
from cli.survey.account_parts import around, changes_of, keys_below
from cli.survey.command import region_of
from cli.survey.surroundings import RUNNING
from cli.target import Target
from cli.terminal import counted
from core.checks import table
from core.checks.drift import TITLES, findings, unexamined_parts
from core.checks.expected import expectation_of
from core.checks.facts import NOT_ASKED, ClusterFacts, Snapshot
from core.checks.finding import Finding, exit_code, unknown, worst_first, worth_knowing
from core.checks.table import description_findings
from core.cluster.operated import operated_cluster
from core.ground.errors import StillwaterError
from core.ground.fields import Unknown, mapping_of
from core.model.account import Subnet
from core.model.kafka import Kafka
from core.model.nodes import Instance, Node
from infra.alerts import alarms
from infra.eks.api import Api

OWNED = "kubernetes.io/cluster/"
WHOLE = "the account around it"
# Domains of AWS's own endpoints, those in a VPC among them.
AWS = re.compile(r"\.(amazonaws\.com(\.cn)?|api\.aws|c2s\.ic\.gov|sc2s\.sgov\.gov)(:\d+)?/?$")
# Karpenter's tag of an instance, and Auto Mode's.
POOL_TAGS = ("karpenter.sh/nodepool", "eks:kubernetes-node-pool-name")
Aws = Callable[[str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Which machines of an EKS cluster's hold Kafka: by group, managed node group or NodePool."""

    eks_cluster: str
    region: str
    groups: Collection[str] = ()
    node_groups: Collection[str] = ()
    # None: whichever it has.
    node_pools: Collection[str] | None = None
    # Where functions of ours stand in subnets of others, and the services of AWS's they call.
    function_subnets: Collection[str] = ()
    called: Collection[str] = ()


def surroundings_findings(session: Any, wanted: Machines) -> list[Finding]:
    """Return what the account would refuse a replacement of these machines, or has announced.

    Whoever stands in for AWS has no quotas, calendars or announcements, and is not asked.
    """

    @Clients
    def aws(service: str) -> Any:
        where = region_of(service, wanted.region)
        return session.client(service, region_name=where, config=PATIENCE)

    def found() -> list[Finding]:
        asked = AWS.search(str(aws("ec2").meta.endpoint_url))
        return table.findings(read(aws, wanted)) if asked else []

    answer = answer_or_reason(found)
    return [unknown(WHOLE, answer)] if isinstance(answer, Unknown) else answer


def read(aws: Aws, wanted: Machines) -> ClusterFacts:
    """Read the account around some machines; each part may fail by itself."""
    every = answer_or_reason(lambda: _instances(aws("ec2"), wanted))
    held = then_any(every, lambda found: account.group_of(aws("autoscaling"), list(found)))
    groups = then(
        held,
        lambda found: {
            name: group
            for name, group in account.groups(
                aws("autoscaling"), {*wanted.groups, *found.values()}
            ).items()
            if name in wanted.groups or group.managed_node_group in wanted.node_groups
        },
    )
    kept = mapping_of(groups)
    grouped = mapping_of(held) if kept else {}
    instances = then(
        every,
        lambda found: {
            name: each
            for name, each in found.items()
            if grouped.get(name) in kept or _is_meant(_pool(each), wanted)
        },
    )
    machinery: dict[str, Any] = {"instances": instances, "groups": groups}
    beside = around(aws, machinery, wanted.eks_cluster, wanted.region, wanted.function_subnets)
    changes = changes_of(aws, groups)
    zones = mapping_of(beside["subnets"])
    return ClusterFacts(
        read_at=time.time(),
        **machinery,
        **changes,
        encryption_keys=keys_below(aws, {}, changes["templates"], beside["control_plane"]),
        group_of=held,
        nodes=then(
            instances, lambda found: {name: _node(name, found[name], zones) for name in found}
        ),
        function_subnets=frozenset(wanted.function_subnets),
        function_services=frozenset(wanted.called),
        **beside,
    )


def _instances(ec2: Any, wanted: Machines) -> dict[str, Instance]:
    """Return the cluster's running machines; raise where some should be there and none is."""
    tag = f"{OWNED}{wanted.eks_cluster}"
    asked = [*RUNNING, {"Name": "tag-key", "Values": [tag]}]
    found = {
        str(item["InstanceId"]): account.instance(item)
        for reservation in pages(ec2, "describe_instances", "Reservations", Filters=asked)
        for item in reservation["Instances"]
    }
    if not found and (wanted.node_groups or wanted.node_pools):
        raise StillwaterError(
            f"EC2 knows no running machine with the tag {tag}, by which those of managed node "
            f"groups and NodePools are known"
        )
    return found


def _pool(instance: Instance) -> str | None:
    """Return the NodePool that has started an instance."""
    return next((instance.tags[key] for key in POOL_TAGS if key in instance.tags), None)


def _is_meant(pool: str | None, wanted: Machines) -> bool:
    return pool is not None and (wanted.node_pools is None or pool in wanted.node_pools)


def _node(name: str, instance: Instance, subnets: Mapping[str, Subnet]) -> Node:
    """Return an instance as a node, of which only its place is known."""
    subnet = subnets.get(instance.subnet or "")
    return Node(
        name=name,
        zone=None if subnet is None else subnet.zone,
        instance_id=name,
        node_pool=_pool(instance),
        auto_mode=POOL_TAGS[1] in instance.tags,
    )


Reader = Callable[[], Iterator[Found]]
_Answer = tuple[dict[str, Mapping[str, Any]], Unknown | None]
# One per reader.
THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What one examination found."""

    environment: str
    cluster: str
    account: str
    region: str
    seconds: float
    findings: Sequence[Finding]

    @property
    def exit_code(self) -> int:
        return exit_code(self.findings)


def examine(target: Target) -> Diagnosis:
    """Read the target and compare it with its spec; raise StillwaterError without an identity."""
    started = time.monotonic()
    wanted = expectation_of(target.spec, alarms.names(operated_cluster(target.spec)))
    with require_login(f"the account of {wanted.environment}"):
        account = LiveAccount(target, wanted)
        number = account.number()
    cluster = KubernetesCluster(wanted, account.api)
    with ThreadPoolExecutor(2) as pool:
        around = pool.submit(_surroundings, target, wanted.snapshot.groups or ())
        of_kafka = pool.submit(_kafka_findings, target, cluster)
        snapshot, unread = _read(wanted.snapshot, account, cluster)
    described, accepted = description_findings(target.spec)
    # What a description alone can answer, it can accept; nothing else that is live goes by it.
    meant = {each.check for each in accepted}
    return Diagnosis(
        environment=wanted.environment,
        cluster=target.spec.prefix,
        account=number,
        region=target.spec.region,
        seconds=time.monotonic() - started,
        findings=worst_first(
            [
                *findings(wanted, snapshot),
                *unread,
                *(each for each in of_kafka.result() if each.check not in meant),
                *around.result(),
                *described,
                *_pause(target),
                *unexamined_parts(wanted, snapshot),
            ]
        ),
    )


def _kafka_findings(target: Target, cluster: KubernetesCluster) -> list[Finding]:
    """Return what is found of the Kafka itself and of who looks after it."""
    spec = target.spec
    namespace = spec.kubernetes.namespace

    def kafkas(api: Api) -> tuple[Kafka, ...]:
        return tuple(each for each in kafka.kafkas(api, namespace) if each.name == spec.name)

    api = answer_or_reason(cluster.api)
    # The twin's operator runs beside its API server, and not in it.
    workloads = NOT_ASKED if target.endpoint_url is not None else then(api, tools.workloads)
    facts = ClusterFacts(
        kafkas=then(api, kafkas),
        pools=then(api, lambda found: kafka.pools(found, namespace)),
        operators=NOT_ASKED if workloads is NOT_ASKED else then(workloads, tools.operators),
        ending_namespaces=then(api, tools.ending_namespaces),
        read_at=time.time(),
    )
    return table.findings(facts)


def _surroundings(target: Target, groups: Collection[str]) -> list[Finding]:
    """Return what is said of the account around the cluster's machines; a twin has none."""
    if target.endpoint_url is not None:
        return []
    machines = Machines(eks_cluster=target.spec.prefix, region=target.spec.region, groups=groups)
    return surroundings_findings(target.session, machines)


def _pause(target: Target) -> Iterator[Finding]:
    """Yield that the cluster is paused: as somebody wants it, and to be named all the same."""
    spec = target.spec
    pause = answer_or_reason(lambda: target.pauses.current(time.time()))
    if isinstance(pause, Unknown):
        yield unknown(f"the pause of {spec.name}", pause)
    elif pause is not None:
        yield worth_knowing(
            "pause",
            spec.name,
            f"{pause.sentence.removesuffix('.')}: nothing new is drained or terminated until then",
            f"end it by `stillwater resume {spec.environment}`",
        )


def _read(
    wanted: Snapshot, account: LiveAccount, cluster: KubernetesCluster
) -> tuple[Snapshot, list[Finding]]:
    """Run every reader of a part this cluster has; what one cannot read costs no other."""
    found: dict[str, Mapping[str, Any]] = {}
    unread: list[Finding] = []
    with ThreadPoolExecutor(THREADS) as pool:
        # Before those who wait for it.
        api = pool.submit(cluster.api)
        readers: list[tuple[Sequence[str], Reader]] = [
            *account.readers(),
            *((parts, lambda each=each: each(api.result())) for parts, each in cluster.readers()),
        ]
        asked = [
            (parts, pool.submit(_answered, reader))
            for parts, reader in readers
            if all(getattr(wanted, part) is not None for part in parts)
        ]
        for parts, future in asked:
            answer, reason = future.result()
            found |= answer
            unread += [
                unknown(TITLES[part], reason or Unknown("it said nothing of it"))
                for part in parts
                if part not in answer
            ]
    return Snapshot(**found), unread


def _answered(reader: Reader) -> _Answer:
    """Return what a reader yields, and why it yields no more."""
    found: dict[str, Mapping[str, Any]] = {}
    try:
        for part, members in reader():
            found |= {part: members}  # what came before a refusal is kept
    except Exception as error:  # noqa: BLE001 - one answer nobody foresaw costs no other part
        return found, unknown_answer(error)
    return found, None


def as_json(diagnosis: Diagnosis) -> str:
    """Return a diagnosis as one JSON object."""
    known = {**asdict(diagnosis), "seconds": round(diagnosis.seconds, 2)}
    return json.dumps({"exit_code": diagnosis.exit_code, **known}, indent=2, ensure_ascii=False)


def verdict(diagnosis: Diagnosis) -> str:
    """Return the last line: how much of what, where, after how long."""
    where = f"{diagnosis.cluster} in account {diagnosis.account}, {diagnosis.region}"
    said = counted(diagnosis.findings) or "everything is as its description says"
    return f"{where}: {said} ({diagnosis.seconds:.1f} s)."
