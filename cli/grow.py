"""Runs `stillwater grow` and `stillwater shrink`: a KafkaRebalance, its plan, and its end.

Each run looks at what is there and goes on from it: the KafkaRebalance's name follows from the
brokers, so that a second run makes no second one. Cruise Control moves the partitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from cli import stack_settings
from cli.doctor.account import eks_api
from cli.provision import ask_for_agreement
from cli.rotate import MOVING, Rotations
from cli.target import Cluster
from cli.terminal import say
from core.cluster import ClusterSpec
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.naming import CLUSTER_LABEL
from core.ground.placement import quantity
from core.ground.words import listing
from core.rotation.rebalance import (
    MIB,
    Mode,
    Rebalance,
    Step,
    disk_after,
    next_step,
    plan,
    read_rebalance,
)
from infra.eks.api import Api, ApiError

STRIMZI = "/apis/kafka.strimzi.io/v1/namespaces"
ASKED = "strimzi.io/rebalance"
POLL_SECONDS = 2.0
WORDS: Mapping[Mode, str] = {"add-brokers": "grow", "remove-brokers": "shrink"}


@dataclass(frozen=True)
class Growth:
    """One Kafka whose partitions move onto brokers, or off them."""

    cluster: Cluster
    api: Api
    namespace: str
    mode: Mode
    brokers: Sequence[int]
    pools: Sequence[Mapping[str, Any]]

    @classmethod
    def named(cls, environment: str, mode: Mode, brokers: Sequence[int]) -> Growth:
        """Open a cluster; raise InvalidInput where it has no Cruise Control, or no such broker."""
        cluster = Cluster.named(environment)
        eks, spec = cluster.client("eks"), cluster.spec
        own = isinstance(spec, ClusterSpec)
        name = spec.prefix if isinstance(spec, ClusterSpec) else spec.eks_cluster
        namespace = spec.kubernetes.namespace if isinstance(spec, ClusterSpec) else spec.namespace
        api = eks_api(cluster.session, eks, name, spec.region)
        kafka = api.get(f"{STRIMZI}/{namespace}/kafkas/{spec.name}")
        if "cruiseControl" not in (kafka.get("spec") or {}):
            remedy = (
                "set `kafka.rebalance: {}` in its description and run `stillwater up`"
                if own
                else "set spec.cruiseControl in the Kafka resource"
            )
            problem = f"Kafka {spec.name} runs without Cruise Control, which moves partitions"
            raise InvalidInput([f"{problem}: {remedy}."])
        selector = f"{CLUSTER_LABEL}={spec.name}"
        listed = api.get(f"{STRIMZI}/{namespace}/kafkanodepools", labelSelector=selector)["items"]
        pools = [pool for pool in listed if "broker" in pool["spec"]["roles"]]
        meant = chosen(pools, mode, brokers)
        return cls(cluster, api, namespace, mode, meant, pools)

    @property
    def name(self) -> str:
        """The KafkaRebalance's name, which follows from the brokers."""
        numbers = "-".join(map(str, self.brokers))
        return f"{self.cluster.spec.name}-{WORDS[self.mode]}-{numbers}"

    @property
    def path(self) -> str:
        return f"{STRIMZI}/{self.namespace}/kafkarebalances/{self.name}"

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """How much a broker may receive; None: a cluster that exists says nothing here."""
        spec = self.cluster.spec
        rebalance = spec.kafka.rebalance if isinstance(spec, ClusterSpec) else None
        return None if rebalance is None else rebalance.throttle_mib_per_s * MIB

    def find(self) -> Rebalance | None:
        try:
            return read_rebalance(self.api.get(self.path))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def create(self) -> None:
        """Ask Cruise Control for a proposal."""
        throttle = self.throttle_bytes_per_s
        self.api.post(
            f"{STRIMZI}/{self.namespace}/kafkarebalances",
            {
                "apiVersion": "kafka.strimzi.io/v1",
                "kind": "KafkaRebalance",
                "metadata": {
                    "name": self.name,
                    "namespace": self.namespace,
                    "labels": {CLUSTER_LABEL: self.cluster.spec.name},
                },
                "spec": {
                    "mode": self.mode,
                    "brokers": list(self.brokers),
                    **({} if throttle is None else {"replicationThrottle": throttle}),
                },
            },
        )

    def ask(self, step: Step) -> None:
        """Annotate the KafkaRebalance with what is wanted of it."""
        self.api.merge(self.path, {"metadata": {"annotations": {ASKED: step.value}}})

    def is_rotating(self) -> bool:
        run = Rotations(self.cluster).run()
        return run is not None and run.state in MOVING

    def plan(self, found: Rebalance) -> list[str]:
        """Say what the proposal comes to."""
        load = ""
        if found.load_config_map is not None:
            path = f"/api/v1/namespaces/{self.namespace}/configmaps/{found.load_config_map}"
            load = self.api.get(path).get("data", {}).get("brokerLoad.json", "")
        book = stack_settings.prices(self.cluster.spec.region)
        return list(plan(found, book, disk_after(load), dict(_disks(self.pools))))


def _disks(pools: Sequence[Mapping[str, Any]]) -> list[tuple[int, float]]:
    """Return each broker with the bytes of its volumes."""
    found = []
    for pool in pools:
        storage = pool["spec"]["storage"]
        volumes = storage.get("volumes") or [storage]
        size = sum(quantity(volume.get("size")) or 0 for volume in volumes)
        found += [(node, float(size)) for node in pool.get("status", {}).get("nodeIds") or ()]
    return found


def chosen(
    pools: Sequence[Mapping[str, Any]], mode: Mode, brokers: Sequence[int]
) -> tuple[int, ...]:
    """Return the brokers that are meant: those named, or each pool's last."""
    known = {
        pool["metadata"]["name"]: sorted(pool.get("status", {}).get("nodeIds") or ())
        for pool in pools
    }
    every = {node for nodes in known.values() for node in nodes}
    if unknown := sorted(set(brokers) - every):
        named = listing(list(map(str, unknown)))
        raise InvalidInput(
            [f"Kafka has no broker {named}: name some of {listing(list(map(str, sorted(every))))}."]
        )
    meant = tuple(sorted(brokers or (nodes[-1] for nodes in known.values() if len(nodes) > 1)))
    if not meant:
        said = "Each node pool has one broker, so none is new and none can go"
        raise InvalidInput([f"{said}: name brokers with --broker, or raise nodes_per_zone first."])
    if mode == "remove-brokers":
        for name, nodes in known.items():
            going = sorted(set(nodes) & set(meant))
            if going and going != nodes[-len(going) :]:
                said = (
                    f"Strimzi removes the highest ids of node pool {name}: {nodes[-len(going) :]}"
                )
                raise InvalidInput([f"{said}; name those in the place of {going}."])
    return meant


def run(
    growth: Growth,
    console: Console,
    *,
    plan_only: bool,
    yes: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Propose, show, ask, approve and follow, from wherever it stands, until it is over."""
    agreed, told = False, ""
    while True:
        found, rotating = growth.find(), growth.is_rotating()
        step = next_step(found, rotating=rotating, agreed=agreed)
        if (said := _told(found, rotating=rotating)) != told:
            say(console, said)
            told = said
        if step is Step.CREATE:
            growth.create()
        elif step is Step.FAIL and found is not None:
            raise StillwaterError(f"{found.sentence}. Delete it when its cause is gone.")
        elif step is Step.DONE:
            # Else a later growth with the same brokers would find this one, and move nothing.
            growth.api.delete(growth.path)
            break
        elif found is not None and found.state == "ProposalReady" and not agreed:
            for sentence in growth.plan(found):
                say(console, sentence)
            if plan_only:
                return
            ask_for_agreement(f"Move them ({growth.name})?", "yes", console, yes=yes)
            agreed = True
            continue
        elif step is not Step.WAIT:
            growth.ask(step)
            # Another proposal may move more than the one that was agreed to.
            agreed = agreed and step is not Step.REFRESH
        sleep(POLL_SECONDS)
    say(console, _after(growth))


def _told(found: Rebalance | None, *, rotating: bool) -> str:
    said = (
        "Stillwater asks Cruise Control for a proposal." if found is None else f"{found.sentence}."
    )
    return f"{said} It waits: a rotation runs." if rotating else said


def _after(growth: Growth) -> str:
    if growth.mode == "add-brokers":
        return "The new brokers have their share."
    return (
        f"Brokers {listing(list(map(str, growth.brokers)))} hold no partition. Lower "
        "`nodes_per_zone` of their pool now, and run `stillwater up`. The Cluster Autoscaler ends "
        "their empty nodes."
    )
