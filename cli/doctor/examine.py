"""Reads every part once, all at the same time, and says what differs and what could not be read."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from cli.answers import answer_or_reason, on
from cli.aws import require_login, sentence
from cli.doctor import surroundings
from cli.doctor.account import Found, LiveAccount
from cli.doctor.cluster import KubernetesCluster
from cli.survey import kafka, tools
from cli.target import Target
from core.checks import table
from core.checks.described import description_findings
from core.checks.drift import TITLES, findings, unexamined_parts
from core.checks.expected import expectation_of
from core.checks.finding import Finding, exit_code, in_order, unknown, worth_knowing
from core.cluster.operated import operated_cluster
from core.ground import naming
from core.ground.errors import StillwaterError, one_line
from core.ground.unknown import Unknown
from core.model.facts import NOT_ASKED, ClusterFacts
from core.model.kafka import Kafka
from core.model.snapshot import Snapshot
from handlers.store.pauses import Pauses
from handlers.store.records import DynamoRecords
from infra.alerts import alarms
from infra.eks.api import Api

UNREADABLE = (BotoCoreError, ClientError, StillwaterError)
Reader = Callable[[], Iterator[Found]]
_Answer = tuple[dict[str, Mapping[str, Any]], str]
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
        findings=in_order(
            [
                *(each.finding for each in findings(wanted, snapshot)),
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
    workloads = NOT_ASKED if target.endpoint_url is not None else on(api, tools.workloads)
    facts = ClusterFacts(
        kafkas=on(api, kafkas),
        pools=on(api, lambda found: kafka.pools(found, namespace)),
        operators=NOT_ASKED if workloads is NOT_ASKED else on(workloads, tools.operators),
        ending_namespaces=on(api, tools.ending_namespaces),
        read_at=time.time(),
    )
    return table.findings(facts)


def _surroundings(target: Target, groups: Collection[str]) -> list[Finding]:
    """Return what is said of the account around the cluster's machines; a twin has none."""
    if target.endpoint_url is not None:
        return []
    machines = surroundings.Machines(
        eks_cluster=target.spec.prefix, region=target.spec.region, groups=groups
    )
    return surroundings.findings(target.session, machines)


def _pause(target: Target) -> Iterator[Finding]:
    """Yield that the cluster is paused: as somebody wants it, and to be named all the same."""
    spec = target.spec
    try:
        client = target.session.client("dynamodb", endpoint_url=target.endpoint_url)
        records = DynamoRecords(naming.ledger_table(spec.prefix), spec.region, client=client)
        pause = Pauses(records, spec.name).current(time.time())
    except (*UNREADABLE, ValueError, KeyError, TypeError) as error:
        yield unknown(f"the pause of {spec.name}", Unknown(sentence(error)))
        return
    if pause is not None:
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
            *((parts, _cluster_reader(api, reader)) for parts, reader in cluster.readers()),
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
                unknown(TITLES[part], Unknown(reason)) for part in parts if part not in answer
            ]
    return Snapshot(**found), unread


def _cluster_reader(api: Future[Api], reader: Callable[[Api], Iterator[Found]]) -> Reader:
    return lambda: reader(api.result())


def _answered(reader: Reader) -> _Answer:
    """Return what a reader yields, and why it yields no more."""
    found: dict[str, Mapping[str, Any]] = {}
    try:
        for part, members in reader():
            found |= {part: members}  # what came before a refusal is kept
    except UNREADABLE as error:
        return found, sentence(error)
    except Exception as error:  # noqa: BLE001 - one answer nobody foresaw costs no other part
        return (
            found,
            f"the answer is not as documented ({one_line(f'{type(error).__name__}: {error}')})",
        )
    return found, ""
