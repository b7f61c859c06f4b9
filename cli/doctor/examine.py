"""Reads every part once, all at the same time, and says what differs and what could not be read."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from cli.aws import require_login, sentence
from cli.doctor import surroundings
from cli.doctor.account import Found, LiveAccount
from cli.doctor.cluster import KubernetesCluster
from cli.target import Target
from core import naming
from core.cluster import rights
from core.cluster.expected import expectation_of
from core.cluster.operated import of_spec
from core.doctor.drift import TITLES, Drift, findings, unexamined_parts
from core.doctor.snapshot import Snapshot
from core.errors import StillwaterError, one_line
from core.survey.finding import Finding
from core.survey.finding import exit_code as code_of
from handlers.adapters.eks import EksApi
from handlers.store.pauses import Pauses
from handlers.store.records import DynamoRecords
from infra.alerts import alarms

UNREADABLE = (BotoCoreError, ClientError, StillwaterError)
Reader = Callable[[], Iterator[Found]]
_Answer = tuple[dict[str, Mapping[str, Any]], str]
# One per reader.
THREADS = 16
CLEAN, DRIFT, NOT_READ = 0, 1, 2


@dataclass(frozen=True, slots=True)
class UnknownPart:
    """A part nothing is known of, and why."""

    part: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What one examination found."""

    environment: str
    cluster: str
    account: str
    region: str
    seconds: float
    findings: Sequence[Drift]
    unread: Sequence[UnknownPart]
    # What the account would refuse a replacement, and what AWS has announced.
    surroundings: Sequence[Finding] = ()
    # Doors without a lock, a pause: no difference from the spec, and to be named all the same.
    open_doors: Sequence[str] = ()

    @property
    def exit_code(self) -> int:
        """0: as the spec says; 1: it is not; 2: a part could not be read, whatever the rest."""
        if self.unread:
            return NOT_READ
        around = code_of(list(self.surroundings))
        return max(around, DRIFT if self.findings else CLEAN)


def examine(target: Target) -> Diagnosis:
    """Read the target and compare it with its spec; raise StillwaterError without an identity."""
    started = time.monotonic()
    wanted = expectation_of(target.spec, alarms.names(of_spec(target.spec)))
    with require_login(f"the account of {wanted.environment}"):
        account = LiveAccount(target, wanted)
        number = account.number()
    cluster = KubernetesCluster(target, wanted, lambda: account.eks_cluster(target.spec.prefix))
    with ThreadPoolExecutor(1) as pool:
        around = pool.submit(_surroundings, target, wanted.snapshot.groups or ())
        snapshot, unread = _read(wanted.snapshot, account, cluster)
    return Diagnosis(
        environment=wanted.environment,
        cluster=target.spec.prefix,
        account=number,
        region=target.spec.region,
        seconds=time.monotonic() - started,
        findings=findings(wanted, snapshot),
        unread=unread,
        surroundings=around.result(),
        open_doors=(
            *_pause_sentences(target),
            *rights.findings(target.spec),
            *unexamined_parts(wanted, snapshot),
        ),
    )


def _surroundings(target: Target, groups: Collection[str]) -> list[Finding]:
    """Return what is said of the account around the cluster's machines; a twin has none."""
    if target.endpoint_url is not None:
        return []
    machines = surroundings.Machines(
        eks_cluster=target.spec.prefix, region=target.spec.region, groups=groups
    )
    return surroundings.findings(target.session, machines)


def _pause_sentences(target: Target) -> Iterator[str]:
    """Yield that the cluster is paused: as somebody wants it, and to be named all the same."""
    spec = target.spec
    try:
        client = target.session.client("dynamodb", endpoint_url=target.endpoint_url)
        records = DynamoRecords(naming.ledger_table(spec.prefix), spec.region, client=client)
        pause = Pauses(records, spec.name).current(time.time())
    except (*UNREADABLE, ValueError, KeyError, TypeError) as error:
        yield f"Whether {spec.name} is paused could not be read: {sentence(error)}."
        return
    if pause is not None:
        yield f"{pause.sentence} Nothing new is drained or terminated until then."


def _read(
    wanted: Snapshot, account: LiveAccount, cluster: KubernetesCluster
) -> tuple[Snapshot, list[UnknownPart]]:
    """Run every reader of a part this cluster has; what one cannot read costs no other."""
    found: dict[str, Mapping[str, Any]] = {}
    unread: list[UnknownPart] = []
    with ThreadPoolExecutor(THREADS) as pool:
        # Before those who wait for it.
        api = pool.submit(cluster.api)
        readers: list[tuple[Sequence[str], Reader]] = [
            *account.readers(),
            *((parts, _of_cluster(api, reader)) for parts, reader in cluster.readers()),
        ]
        asked = [
            (parts, pool.submit(_answer_of, reader))
            for parts, reader in readers
            if all(getattr(wanted, part) is not None for part in parts)
        ]
        for parts, future in asked:
            answer, reason = future.result()
            found |= answer
            unread += [UnknownPart(TITLES[part], reason) for part in parts if part not in answer]
    return Snapshot(**found), unread


def _of_cluster(api: Future[EksApi], reader: Callable[[EksApi], Iterator[Found]]) -> Reader:
    return lambda: reader(api.result())


def _answer_of(reader: Reader) -> _Answer:
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
