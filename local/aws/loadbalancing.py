"""Load balancers in the twin: target health by real TCP checks, and what the NLB's proxy forwards.

moto calls every IP target healthy, knows one port per address, drains nothing, calls a group on no
listener healthy and names a network load balancer's ARN like an application load balancer's. Here
a target group keeps its targets by (id, port) and asks each on the group's own schedule, at the
loopback address that stands for the pod's. What an answer means is judged as AWS does: states,
thresholds, draining. Source: ELBv2's DescribeTargetHealth and the health check settings of its
target groups.
"""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from moto.elbv2 import models
from moto.elbv2.exceptions import TargetGroupNotFoundError
from moto.elbv2.models import FakeHealthStatus, elbv2_backends
from werkzeug.wrappers import Response

from local.aws.instances import all_backends
from local.journal import Write
from local.locks import COMPUTE
from local.processes import listens

# Registration takes AWS minutes at times, and nobody promises a figure (LBC#1834).
REGISTRATION_SECONDS = 1.0

REGISTERING = "Elb.RegistrationInProgress"
FIRST_CHECKS = "Elb.InitialHealthChecking"
FAILED_CHECKS = "Target.FailedHealthChecks"
DEREGISTERING = "Target.DeregistrationInProgress"
NOT_REGISTERED = "Target.NotRegistered"
NOT_IN_USE = "Target.NotInUse"
DESCRIPTIONS = {
    REGISTERING: "Target registration is in progress",
    FIRST_CHECKS: "Initial health checks in progress",
    FAILED_CHECKS: "Health checks failed",
    DEREGISTERING: "Target deregistration is in progress",
    NOT_REGISTERED: "Target is not registered to the target group",
    NOT_IN_USE: (
        "Target group is not configured to receive traffic from the load balancer, or the target "
        "is in an Availability Zone that is not enabled for it"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """A target group's health check and deregistration settings."""

    interval_seconds: float
    timeout_seconds: float
    healthy_threshold: int
    unhealthy_threshold: int
    deregistration_seconds: float


@dataclass(slots=True)
class RegisteredTarget:
    """One registered address and port; a target group keeps one per pair."""

    id: str
    port: int
    registered_at: float
    state: str = "initial"
    reason: str | None = REGISTERING
    next_check_at: float = 0.0
    gone_at: float | None = None
    checking: bool = False
    passed: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        self.next_check_at = self.registered_at + REGISTRATION_SECONDS

    @property
    def draining(self) -> bool:
        return self.state == "draining"

    def is_due(self, now: float) -> bool:
        return not self.draining and not self.checking and now >= self.next_check_at

    def over(self, now: float) -> bool:
        """Say whether a draining target has drained."""
        return self.gone_at is not None and now >= self.gone_at

    def drain(self, checks: Checks, now: float) -> None:
        """Begin to drain; existing connections have the group's delay to end."""
        self.state, self.reason = "draining", DEREGISTERING
        self.gone_at = now + checks.deregistration_seconds

    def record(self, checks: Checks, now: float, *, ok: bool) -> bool:
        """Take in one check's answer; return whether the state changed."""
        self.checking = False
        self.next_check_at = now + checks.interval_seconds
        if self.draining:
            return False
        self.passed, self.failed = (self.passed + 1, 0) if ok else (0, self.failed + 1)
        before = self.state
        if self.passed >= checks.healthy_threshold:
            self.state, self.reason = "healthy", None
        elif self.failed >= checks.unhealthy_threshold:
            self.state, self.reason = "unhealthy", FAILED_CHECKS
        elif self.state == "initial":
            self.reason = FIRST_CHECKS
        return self.state != before


CHECK_THREADS = 8

# Pod address and port -> where this machine listens for it, or None for an address of nobody's.
Dial = Callable[[str, int], tuple[str, int] | None]


def checks_of(group: Any) -> Checks:
    """Return the settings of a target group of moto's, which keeps most of them as text."""
    return Checks(
        interval_seconds=float(group.health_check_interval_seconds),
        timeout_seconds=float(group.health_check_timeout_seconds),
        healthy_threshold=int(group.healthy_threshold_count),
        unhealthy_threshold=int(group.unhealthy_threshold_count),
        deregistration_seconds=float(group.attributes["deregistration_delay.timeout_seconds"]),
    )


def check_port(group: Any, target: RegisteredTarget) -> int:
    configured = group.health_check_port
    return target.port if configured in {None, "traffic-port"} else int(configured)


def key_of(group: Any, target: Mapping[str, Any]) -> tuple[str, int]:
    return str(target["Id"]), int(target.get("Port") or group.port)


def forwards_to(backend: Any, listener: Any) -> Iterator[str]:
    """Yield the ARNs of the target groups a listener forwards to."""
    for action in listener.default_actions:
        if action.type == "forward":
            # moto's own reading of the two ways to write a forward.
            yield from backend._get_target_group_arns_from(action.data)  # noqa: SLF001


def zone_of(backend: Any, group: Any, target: RegisteredTarget) -> str | None:
    """Return the zone of a target in the group's VPC, or None for an address outside of it."""
    address = ipaddress.ip_address(target.id)
    for subnet in backend.ec2_backend.describe_subnets():
        if subnet.vpc_id == group.vpc_id and address in subnet.cidr:
            return str(subnet.availability_zone)
    return None


def stands_in(balancer: Any, zone: str | None) -> bool:
    """Say whether a load balancer has a node in a zone; an address outside the VPC is in all."""
    return zone is None or zone in {subnet.availability_zone for subnet in balancer.subnets}


def in_use(backend: Any, group: Any, target: RegisteredTarget) -> bool:
    """Say whether a listener forwards to a target's group, from a balancer that has its zone."""
    zone = zone_of(backend, group, target)
    return any(
        stands_in(balancer, zone) and group.arn in forwards_to(backend, listener)
        for balancer in list(backend.load_balancers.values())
        for listener in list(balancer.listeners.values())
    )


def forwarding() -> list[dict[str, Any]]:
    """Return every network listener with the targets behind it, for the proxy."""
    return [
        {
            "load_balancer": balancer.name,
            "port": int(listener.port),
            "targets": [
                {"id": t.id, "port": t.port, "state": t.state}
                for arn in forwards_to(backend, listener)
                if (group := backend.target_groups.get(arn)) is not None
                for t in list(group.targets.values())
                if stands_in(balancer, zone_of(backend, group, t))
            ],
        }
        for backend in all_backends(elbv2_backends)
        for balancer in list(backend.load_balancers.values())
        if balancer.type == "network"
        for listener in list(balancer.listeners.values())
    ]


def answer_forwarding() -> Response:
    """Answer GET /stillwater/load-balancers."""
    with COMPUTE:
        return Response(json.dumps(forwarding()), mimetype="application/json")


class HealthChecks:
    """Asks every target of every group that is in use, and lets drained ones go."""

    def __init__(self, dial: Dial, journal: Write) -> None:
        self._dial, self._journal = dial, journal
        self._pool = ThreadPoolExecutor(CHECK_THREADS, thread_name_prefix="health")

    def stop(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def step(self, now: float) -> None:
        """Ask what is due, drop what has drained."""
        with COMPUTE:
            for backend in all_backends(elbv2_backends):
                for group in list(backend.target_groups.values()):
                    self._step_group(backend, group, now)

    def _step_group(self, backend: Any, group: Any, now: float) -> None:
        for key, target in list(group.targets.items()):
            if target.over(now):
                del group.targets[key]
                self._tell("target_deregistered", group, target)
            elif target.is_due(now) and in_use(backend, group, target):
                target.checking = True
                self._pool.submit(self._check, group, target)

    def _check(self, group: Any, target: RegisteredTarget) -> None:
        ok = self._answers(target.id, check_port(group, target), checks_of(group).timeout_seconds)
        with COMPUTE:
            if target.record(checks_of(group), time.time(), ok=ok):
                self._tell(f"target_{target.state}", group, target)

    def _answers(self, address: str, port: int, timeout_seconds: float) -> bool:
        where = self._dial(address, port)
        return where is not None and listens(*where, timeout_seconds)

    def _tell(self, event: str, group: Any, target: RegisteredTarget) -> None:
        since = round(time.time() - target.registered_at, 2)
        self._journal(
            "nlb", event, group=group.name, target=target.id, port=target.port, after_s=since
        )


def install(dial: Dial, journal: Write) -> HealthChecks:
    """Put these targets in the place of moto's; return the checks, whose rounds somebody does."""
    group_class = models.FakeTargetGroup

    def register(group: Any, targets: list[dict[str, Any]]) -> None:
        for given in targets:
            key = key_of(group, given)
            known = group.targets.get(key)
            if known is None or known.draining:  # a draining one starts over
                group.targets[key] = RegisteredTarget(*key, registered_at=time.time())
                journal("nlb", "target_registered", group=group.name, target=key[0], port=key[1])

    def deregister(group: Any, targets: list[dict[str, Any]]) -> None:
        for given in targets:
            known = group.targets.get(key_of(group, given))
            # AWS takes a target it does not know without a word.
            if known is not None and not known.draining:
                known.drain(checks_of(group), time.time())
                journal(
                    "nlb", "target_draining", group=group.name, target=known.id, port=known.port
                )

    def health_for(group: Any, given: Mapping[str, Any], _ec2: Any) -> FakeHealthStatus:
        target_id, port = key_of(group, given)
        state, reason = _state(group, group.targets.get((target_id, port)))
        configured = group.health_check_port
        shown = str(port) if configured in {None, "traffic-port"} else str(configured)
        return FakeHealthStatus(
            target_id, str(port), shown, state, reason, DESCRIPTIONS.get(reason or "")
        )

    group_class.register, group_class.deregister = register, deregister
    group_class.health_for = health_for
    _install_described_targets()
    _install_network_names()
    return HealthChecks(dial, journal)


def _state(group: Any, target: RegisteredTarget | None) -> tuple[str, str | None]:
    if target is None:
        return "unused", NOT_REGISTERED
    backend = elbv2_backends[group.account_id][group.region_name]
    if not target.draining and not in_use(backend, group, target):
        return "unused", NOT_IN_USE
    return target.state, target.reason


def _install_described_targets() -> None:
    """Let DescribeTargetHealth without targets list ours, which are no dictionaries."""

    def describe_target_health(backend: Any, target_group_arn: str, targets: Any) -> Any:
        group = backend.target_groups.get(target_group_arn)
        if group is None:
            raise TargetGroupNotFoundError
        every = [{"Id": t.id, "Port": t.port} for t in group.targets.values()]
        return [group.health_for(given, None) for given in targets or every]

    models.ELBv2Backend.describe_target_health = describe_target_health


def _install_network_names() -> None:
    """Name network load balancers as AWS does: `net/` in the ARN, `elb.<region>` in the host."""
    moto_create = models.ELBv2Backend.create_load_balancer

    def create_load_balancer(backend: Any, *args: Any, **kwargs: Any) -> Any:
        balancer = moto_create(backend, *args, **kwargs)
        if balancer.type == "network":
            invented = balancer.arn
            balancer.arn = invented.replace(":loadbalancer/app/", ":loadbalancer/net/")
            identity = balancer.arn.rpartition("/")[2]
            balancer.dns_name = (
                f"{balancer.name}-{identity}.elb.{backend.region_name}.amazonaws.com"
            )
            backend.load_balancers[balancer.arn] = backend.load_balancers.pop(invented)
            tags = backend.tagging_service.list_tags_for_resource(invented)["Tags"]
            backend.tagging_service.delete_all_tags_for_resource(invented)
            backend.tagging_service.tag_resource(balancer.arn, tags)
        return balancer

    models.ELBv2Backend.create_load_balancer = create_load_balancer
