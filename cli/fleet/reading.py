"""Reads a fleet's file, and every cluster of it at once: description, ledger, λ rotate, λ health.

Threads are bounded. Clusters of one account and region share their clients, and all accounts what
describes AWS's services. What one cluster refuses is said of it and costs no other.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import botocore.session
from botocore.config import Config

from cli import aws, health, stack_settings
from cli.answers import answer_or_reason, then
from cli.project import release
from cli.rotate import Rotations
from cli.target import (
    Cluster,
    DescribedKafka,
    Shape,
    find_kafka,
    find_twin,
    has_shape,
    is_description,
)
from core.availability.budget import Spent
from core.cluster import ClusterSpec
from core.cluster.fleet import FleetFile, parse_fleet
from core.cost import pricing
from core.events import Kind
from core.fleet import ClusterFacts, RotationEstimate
from core.ground.constants import RELEASE
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.fields import Unknown
from core.ground.naming import TWIN_ENVIRONMENT
from core.health.verdict import Health, HealthVerdict
from core.rotation.run_record import Run
from core.slack import subject
from infra import versions
from infra.spec import load_yaml

# Nearly all of a read is waiting, for λ rotate and λ health longest.
AT_ONCE = 100
MOST_SECONDS = 30.0
TOLD: Shape = {"versions": dict, "unjudged": list}
T = TypeVar("T")
_NO_SESSION_NAME = re.compile(r"[^\w+=,.@-]")


def ask_all(
    names: Iterable[str],
    ask: Callable[[str], T],
    at_once: int = AT_ONCE,
    seconds: float = MOST_SECONDS,
) -> dict[str, T | Unknown]:
    """Return what `ask` answers about each, from so many threads at most, within a bound."""
    answers: dict[str, Future[T | Unknown]] = {name: Future() for name in names}
    left = SimpleQueue[str]()
    for name in answers:
        left.put(name)

    def work() -> None:
        with suppress(Empty):
            while name := left.get_nowait():
                answers[name].set_result(answer_or_reason(ask, name))

    for _ in range(min(at_once, len(answers))):
        # An executor's threads would be waited for when the process ends.
        threading.Thread(target=work, daemon=True).start()
    wait(answers.values(), seconds)
    silent = Unknown(f"it did not answer within {seconds:.0f} s")
    return {name: each.result() if each.done() else silent for name, each in answers.items()}


def read_file(path: Path) -> FleetFile:
    """Return what a fleet's file says; raises InvalidInput with every problem of it."""
    if not path.exists():
        raise InvalidInput(
            [f"{path} does not exist; `stillwater init . --fleet` writes fleet.yaml."]
        )
    found = load_yaml(path)
    return parse_fleet(found.content, found.locate)


_Key = tuple[str | None, str | None, str]


@dataclass(frozen=True, slots=True)
class _Shared:
    """One account and region as everybody there reaches it: a client is made once."""

    client: Callable[..., Any]
    asker: str


@dataclass(frozen=True)
class Gateway:
    """The clusters of a fleet, under the caller's identity or the role that the file names."""

    file: FleetFile
    root: Path  # what the file's paths are relative to
    _sessions: dict[_Key, _Shared] = field(default_factory=dict)
    _making: dict[_Key, threading.Lock] = field(default_factory=dict)

    def read(self, name: str) -> ClusterFacts:
        """Return what is known of a cluster; raises StillwaterError where it cannot be opened."""
        found = self.cluster(name)
        place = self.root / self.file.environments[name].directory
        return read_cluster(found, place)

    def run(self, name: str) -> Run | None:
        """Return the rotation that goes on in a cluster, or the last, from its ledger alone."""
        return Rotations(self.cluster(name)).run()

    def ask(self, name: str, command: str, **said: Any) -> str:
        """Ask for a rotation, or for its pause; raises StillwaterError where that is refused."""
        return str(Rotations(self.cluster(name)).ask(command, **said)["said"])

    def cluster(self, name: str) -> Cluster:
        """Return a cluster of the file's; raises StillwaterError where it cannot be opened."""
        told = self.file.environments[name]
        environment, place = told.environment or name, self.root / told.directory
        if environment == TWIN_ENVIRONMENT:
            return find_twin()
        profile: str | None = None
        spec: ClusterSpec | DescribedKafka
        if is_description(environment):
            spec = find_kafka(str(place / environment))
        else:
            found = stack_settings.read_described(environment, stack_settings.find(place))
            profile, spec = found.profile, found.spec
        if spec.region != told.region:
            problem = f"{name} is in {told.region} by the fleet's file and in {spec.region} by its"
            raise InvalidInput([f"{problem} description; write the same region in both."])
        shared = self._shared((profile, told.role, told.region))
        return Cluster(spec, shared, asker=shared.asker)

    def _shared(self, key: _Key) -> _Shared:
        # Who waits, waits for this key alone: other accounts are asked meanwhile.
        with self._making.setdefault(key, threading.Lock()):
            if key not in self._sessions:
                self._sessions[key] = self._open(*key)
            return self._sessions[key]

    def _open(self, profile: str | None, role: str | None, region: str) -> _Shared:
        if role is None:
            core = botocore.session.Session()
            core.set_default_client_config(Config(max_pool_connections=AT_ONCE))
            clients = aws.Clients(aws.session(profile, region, core).client)
            arn = str(clients("sts").get_caller_identity()["Arn"])
            return _Shared(clients, arn.rpartition("/")[2].rpartition(":")[2])
        own = self._shared((profile, None, region))
        name = _NO_SESSION_NAME.sub("-", own.asker)
        lent = own.client("sts").assume_role(RoleArn=role, RoleSessionName=name)["Credentials"]
        # A session of its own would read anew what describes AWS's services, for each account.
        as_role = partial(
            own.client,
            aws_access_key_id=lent["AccessKeyId"],
            aws_secret_access_key=lent["SecretAccessKey"],
            aws_session_token=lent["SessionToken"],
        )
        return _Shared(as_role, own.asker)


def wanted_versions(cluster: Cluster, place: Path) -> Mapping[str, str]:
    """Return the versions that a description and its project's requirements.txt name."""
    spec = cluster.spec
    if not isinstance(spec, ClusterSpec):
        return {}
    try:
        pinned = release.pinned_release(place / "requirements.txt")
    except InvalidInput:
        pinned = RELEASE  # A checkout is its own release.
    described = {"eks": spec.kubernetes.version, "kafka": spec.kafka.version, "stillwater": pinned}
    # Which operator another release installs is not known here.
    return described | ({"strimzi": versions.STRIMZI_CHART_VERSION} if pinned == RELEASE else {})


def read_cluster(cluster: Cluster, place: Path) -> ClusterFacts:
    """Return what is known of one cluster; what is not is said, and nothing raised."""
    rotations = Rotations(cluster)
    told = answer_or_reason(_plan, rotations)
    return ClusterFacts(
        versions=then(told, lambda known: _versions(known["versions"])),
        description=answer_or_reason(wanted_versions, cluster, place),
        nodes=then(told, _outdated),
        estimate=then(told, lambda known: _estimate(known["plan"], cluster.spec, place)),
        rotation=answer_or_reason(rotations.run),
        pause=answer_or_reason(_pause, cluster),
        incidents=answer_or_reason(_incidents, cluster),
        health=answer_or_reason(_health, cluster),
        budget=then(told, lambda known: known["spent"] and Spent(**known["spent"])),
    )


def _plan(rotations: Rotations) -> Mapping[str, Any]:
    told = rotations.ask("plan")
    if not has_shape(told, TOLD):
        raise StillwaterError("λ rotate is of a release that names no versions: `stillwater up`")
    return told


def _versions(told: Mapping[str, str | None]) -> Mapping[str, str | None]:
    """Return the versions that run; of EKS's the two numbers that people say."""
    eks = re.match(r"v?(\d+\.\d+)", told.get("eks") or "")
    return {**told, "eks": eks[1] if eks else None}


def _outdated(told: Mapping[str, Any]) -> Mapping[int, str]:
    """Return the outdated nodes; raises StillwaterError where some cannot be judged."""
    if told["unjudged"]:
        raise StillwaterError(str(told["unjudged"][0]))
    return {node["node_id"]: node["why"] for node in told["plan"]["nodes"]}


def _estimate(plan: Mapping[str, Any], spec: object, place: Path) -> RotationEstimate:
    nodes = plan["nodes"]
    usd = _usd(nodes, spec, place) if isinstance(spec, ClusterSpec) else None
    return RotationEstimate(nodes=len(nodes), seconds=plan["seconds"], usd=usd)


def _usd(nodes: Iterable[Mapping[str, Any]], spec: ClusterSpec, place: Path) -> float | None:
    """Return what each new instance costs next to the old one, and what is copied to it."""
    book = pricing.book(spec.region, own=pricing.own_file(place))
    hourly = {
        node_id: book.instance_hour_usd(pool.instance_type)
        for pool in spec.pools
        for ids in spec.node_ids_of(pool).values()
        for node_id in ids
    }
    total, copied = 0.0, book.usd("inter_zone_gib")
    for node in nodes:
        hour, gib = hourly.get(node["node_id"]), (node["resync_bytes"] or 0) / pricing.BYTES_PER_GIB
        if hour is None or (copied is None and gib):
            return None
        total += float(hour) * node["seconds"] / 3600 + float(copied or 0) * gib
    return total


def _pause(cluster: Cluster) -> str:
    pause = cluster.pauses.current(time.time())
    return "" if pause is None else pause.sentence


def _incidents(cluster: Cluster) -> tuple[str, ...]:
    """Return the open incidents that no rotation opened, in words."""
    return tuple(
        f"{subject(each)} ({each.state.value})"
        for each in cluster.incidents(closed=False)
        if each.kind is not Kind.ROTATION
    )


def _health(cluster: Cluster) -> HealthVerdict:
    said = health.ask(cluster).document
    return HealthVerdict(Health(said["status"]), str(said["message"]))
