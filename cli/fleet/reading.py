"""Reads a fleet's file, and every cluster of it at once: description, ledger, λ rotate, λ health.

Threads are bounded. Clusters of one account and region share their clients, and all accounts what
describes AWS's services. What one cluster refuses is said of it and costs no other.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import boto3
import botocore.session

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
from core.incidents.record import Incident
from core.slack import subject
from infra import versions
from infra.spec import load_yaml

# Nearly all of a read is waiting, for λ rotate and λ health longest.
AT_ONCE = 100
TOLD: Shape = {"versions": dict, "unjudged": list}
_NO_SESSION_NAME = re.compile(r"[^\w+=,.@-]")


class Gateway(Protocol):
    """Reads one cluster of a fleet, and asks for its rotation."""

    def read(self, name: str) -> ClusterFacts:
        """Return what is known of a cluster; what is not is said, and nothing raised."""

    def ask(self, name: str, command: str, **said: Any) -> str:
        """Ask for a rotation, or for its pause; raises StillwaterError where that is refused."""


def read_all(
    names: Iterable[str], read: Callable[[str], ClusterFacts], at_once: int = AT_ONCE
) -> dict[str, ClusterFacts]:
    """Return the facts of every cluster, read by so many threads at most."""
    listed = list(names)
    with ThreadPoolExecutor(min(at_once, len(listed))) as pool:
        return dict(zip(listed, pool.map(read, listed), strict=True))


def read_file(path: Path) -> FleetFile:
    """Return what a fleet's file says; raises InvalidInput with every problem of it."""
    found = load_yaml(path)
    return parse_fleet(found.content, found.locate)


@dataclass(frozen=True)
class _Shared:
    """One account and region as everybody there reaches it: a client is made once."""

    client: aws.Clients


@dataclass(frozen=True)
class AwsGateway:
    """The clusters of a fleet, under the caller's identity or the role that the file names."""

    file: FleetFile
    root: Path  # what the file's paths are relative to
    _sessions: dict[tuple[str | None, ...], _Shared] = field(default_factory=dict)
    _making: dict[tuple[str | None, ...], threading.Lock] = field(default_factory=dict)

    @cached_property
    def _loader(self) -> Any:
        return botocore.session.get_session().get_component("data_loader")

    @cached_property
    def _asker(self) -> str:
        """Return who asks, which roles are assumed in the name of."""
        identity = boto3.client("sts", "us-east-1").get_caller_identity()
        return _NO_SESSION_NAME.sub("-", str(identity["Arn"]).rpartition("/")[2].rpartition(":")[2])

    def read(self, name: str) -> ClusterFacts:
        found = answer_or_reason(self.cluster, name)
        if isinstance(found, Unknown):
            return ClusterFacts.unread(found)
        place = self.root / self.file.environments[name].directory
        return read_cluster(found, answer_or_reason(wanted_versions, found, place))

    def ask(self, name: str, command: str, **said: Any) -> str:
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
        shared = self._shared(profile, told.role, told.region)
        return Cluster(spec, shared, asker=self._asker)

    def _shared(self, profile: str | None, role: str | None, region: str) -> _Shared:
        key = (profile, role, region)
        # Of one key alone: other accounts are asked meanwhile.
        with self._making.setdefault(key, threading.Lock()):
            if key not in self._sessions:
                opened = (
                    self._lent(*key) if role else aws.session(profile, region, loader=self._loader)
                )
                self._sessions[key] = _Shared(aws.Clients(opened.client))
            return self._sessions[key]

    def _lent(self, profile: str | None, role: str | None, region: str) -> boto3.Session:
        sts = self._shared(profile, None, region).client("sts")
        keys = sts.assume_role(RoleArn=role, RoleSessionName=self._asker)["Credentials"]
        shared = botocore.session.Session()
        shared.register_component("data_loader", self._loader)
        shared.set_credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        return boto3.Session(botocore_session=shared, region_name=region)


def wanted_versions(cluster: Cluster, place: Path) -> Mapping[str, str]:
    """Return the versions that a description and its project's requirements.txt name."""
    spec = cluster.spec
    if not isinstance(spec, ClusterSpec):
        return {}
    try:
        pinned = release.pinned_release(place / "requirements.txt")
    except InvalidInput:
        pinned = RELEASE  # A checkout is its own release.
    described = {
        "eks": spec.kubernetes.version,
        "kafka": spec.kafka.version,
        "stillwater": pinned,
    }
    # Which operator another release installs is not known here.
    return described | ({"strimzi": versions.STRIMZI_CHART_VERSION} if pinned == RELEASE else {})


def read_cluster(cluster: Cluster, wanted: Mapping[str, str] | Unknown) -> ClusterFacts:
    """Return what is known of one cluster; what is not is said, and nothing raised."""
    rotations = Rotations(cluster)
    told = answer_or_reason(_plan, rotations)
    return ClusterFacts(
        present=then(told, lambda known: _present(known["versions"])),
        wanted=wanted,
        outdated=then(told, _outdated),
        estimate=then(told, lambda known: _estimate(known["plan"], cluster.spec)),
        run=answer_or_reason(rotations.run),
        pause=answer_or_reason(_pause, cluster),
        incidents=answer_or_reason(_incidents, cluster),
        health=answer_or_reason(_health, cluster),
        spent=then(told, lambda known: _spent(known["spent"])),
    )


def _plan(rotations: Rotations) -> Mapping[str, Any]:
    told = rotations.ask("plan")
    if not has_shape(told, TOLD):
        raise StillwaterError("λ rotate is of a release that names no versions: `stillwater up`")
    return told


def _present(told: Mapping[str, str | None]) -> Mapping[str, str | None]:
    """Return the versions that run; of EKS's the two numbers that people say."""
    eks = re.match(r"v?(\d+\.\d+)", told.get("eks") or "")
    return {**told, "eks": eks[1] if eks else None}


def _outdated(told: Mapping[str, Any]) -> Mapping[int, str]:
    """Return the outdated nodes; raises StillwaterError where some cannot be judged."""
    if told["unjudged"]:
        raise StillwaterError(str(told["unjudged"][0]))
    return {node["node_id"]: node["why"] for node in told["plan"]["nodes"]}


def _estimate(plan: Mapping[str, Any], spec: Any) -> RotationEstimate:
    """Return what a plan takes: each new instance beside the old one, and what is copied."""
    nodes = plan["nodes"]
    usd = _usd(nodes, spec) if isinstance(spec, ClusterSpec) else None
    return RotationEstimate(nodes=len(nodes), seconds=plan["seconds"], usd=usd)


def _usd(nodes: Iterable[Mapping[str, Any]], spec: ClusterSpec) -> float | None:
    book = pricing.book(spec.region)
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


def _spent(told: Mapping[str, Any] | None) -> Spent | None:
    return None if told is None else Spent(**told)


def _pause(cluster: Cluster) -> str:
    pause = cluster.pauses.current(time.time())
    return "" if pause is None else pause.sentence


def _incidents(cluster: Cluster) -> tuple[str, ...]:
    """Return the open incidents that no rotation opened, in words."""
    return tuple(_short(i) for i in cluster.incidents(closed=False) if i.kind is not Kind.ROTATION)


def _short(incident: Incident) -> str:
    return f"{subject(incident)} ({incident.state.value})"


def _health(cluster: Cluster) -> HealthVerdict:
    said = health.ask(cluster).document
    return HealthVerdict(Health(said["status"]), str(said["message"]))
