"""Load balancers of the twin: targets' health, draining, and what the program makes of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.elbv2 import models

from local.aws import loadbalancing
from local.aws.loadbalancing import (
    DEREGISTERING,
    FAILED_CHECKS,
    FIRST_CHECKS,
    NOT_IN_USE,
    REGISTERING,
    REGISTRATION_SECONDS,
    Checks,
    HealthChecks,
    RegisteredTarget,
    forwarding,
)
from local.pulumi.aws_adapter import Adapter, Aws
from local.pulumi.aws_rows import ADAPTERS
from local.pulumi.provider import Existing, Resource

CHECKS = Checks(
    interval_seconds=5,
    timeout_seconds=5,
    healthy_threshold=2,
    unhealthy_threshold=2,
    deregistration_seconds=30,
)


def test_a_check_that_was_under_way_does_not_revive_a_draining_target() -> None:
    target = RegisteredTarget("10.11.1.5", 9094, registered_at=100.0)
    target.record(CHECKS, 101.0, ok=True)
    target.drain(CHECKS, 102.0)
    assert not target.is_due(200.0)
    assert not target.record(CHECKS, 102.1, ok=True)
    assert (target.state, target.reason) == ("draining", DEREGISTERING)


PORT, INTERVAL = 9094, 5
URN = "urn:pulumi:local-kafka::stillwater::aws:lb/{0}:{1}::balancing"
REPLACED = {
    models.FakeTargetGroup: ("register", "deregister", "health_for"),
    models.ELBv2Backend: ("describe_target_health", "create_load_balancer"),
}


class Clock:
    """The time of these tests."""

    now = 0.0

    def time(self) -> float:
        return self.now


class AtOnce:
    """An executor that has done the work when it is submitted."""

    def submit(self, work: Callable[..., None], *arguments: Any) -> None:
        work(*arguments)

    def shutdown(self, **_: Any) -> None: ...


@dataclass
class Site:
    """Two zones of a VPC, a balancer in some of them and a group that its listener forwards to."""

    checks: HealthChecks
    clock: Clock
    vpc: str
    subnets: dict[str, str]
    # What the journal was told.
    told: list[str]
    # Addresses that answer.
    up: set[str] = field(default_factory=set)
    balancer: str = ""
    group: str = ""

    @property
    def elb(self) -> Any:
        return boto3.client("elbv2", region_name="us-east-1")

    def build(self, *zones: str) -> None:
        """Make balancer, group and listener as the provider does, the balancer in some zones."""
        aws = Aws()
        inputs: dict[str, Any] = {
            "name": "nlb",
            "loadBalancerType": "network",
            "internal": True,
            "subnets": [self.subnets[zone] for zone in zones],
        }
        self.balancer = adapter("loadBalancer").create(aws, resource("loadBalancer"), inputs).id
        group = adapter("targetGroup").create(aws, resource("targetGroup"), self.group_inputs())
        self.group = group.id
        listener = {
            "loadBalancerArn": self.balancer,
            "port": 10010,
            "protocol": "TCP",
            "tcpIdleTimeoutSeconds": 660,
            "defaultActions": [{"type": "forward", "targetGroupArn": self.group}],
        }
        adapter("listener").create(aws, resource("listener"), listener)

    def group_inputs(self, **check: Any) -> dict[str, Any]:
        timing = {
            "interval": INTERVAL,
            "timeout": 5,
            "healthyThreshold": 2,
            "unhealthyThreshold": 2,
        }
        return {
            "name": "group",
            "port": PORT,
            "protocol": "TCP",
            "targetType": "ip",
            "vpcId": self.vpc,
            "healthCheck": {"protocol": "TCP", "port": "traffic-port", **timing, **check},
            "deregistrationDelay": 30,
            "connectionTermination": True,
        }

    def register(self, *addresses: str) -> None:
        targets = [{"Id": address, "Port": PORT} for address in addresses]
        self.elb.register_targets(TargetGroupArn=self.group, Targets=targets)

    def health(self) -> dict[str, tuple[str, str | None]]:
        found = self.elb.describe_target_health(TargetGroupArn=self.group)
        return {
            entry["Target"]["Id"]: (
                entry["TargetHealth"]["State"],
                entry["TargetHealth"].get("Reason"),
            )
            for entry in found["TargetHealthDescriptions"]
        }

    def at(self, seconds: float) -> dict[str, tuple[str, str | None]]:
        """Let it be so many seconds after the start, ask what is due, return everyone's health."""
        self.clock.now = seconds
        self.checks.step(seconds)
        return self.health()


def adapter(kind: str) -> Adapter:
    return ADAPTERS[f"aws:lb/{kind}:{kind[0].upper()}{kind[1:]}"]


def resource(kind: str) -> Resource:
    return Resource(URN.format(kind, kind[0].upper() + kind[1:]))


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    for owner, names in REPLACED.items():
        for name in names:
            monkeypatch.setattr(owner, name, getattr(owner, name))
    clock = Clock()
    monkeypatch.setattr(loadbalancing, "time", clock)
    with mock_aws():
        ec2 = boto3.client("ec2", region_name="us-east-1")
        vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        subnets = {
            zone: ec2.create_subnet(
                VpcId=vpc, CidrBlock=f"10.9.{number}.0/24", AvailabilityZone=f"us-east-1{zone}"
            )["Subnet"]["SubnetId"]
            for number, zone in enumerate("ab")
        }
        told: list[str] = []
        checks = loadbalancing.install(
            lambda *_: None, lambda _source, event, **_facts: told.append(event)
        )
        made = Site(checks, clock, vpc, subnets, told)
        monkeypatch.setattr(checks, "_pool", AtOnce())
        monkeypatch.setattr(checks, "_answers", lambda address, _port, _timeout: address in made.up)
        yield made


HERE, THERE, ELSEWHERE = "10.9.0.7", "10.9.1.7", "10.8.0.7"
FIRST = REGISTRATION_SECONDS


def test_a_target_is_healthy_after_its_groups_threshold_and_unhealthy_after_the_other(
    site: Site,
) -> None:
    site.build("a", "b")
    site.up = {HERE}
    site.register(HERE)
    assert site.at(FIRST - 0.1)[HERE] == ("initial", REGISTERING)
    assert site.at(FIRST)[HERE] == ("initial", FIRST_CHECKS)
    assert site.at(FIRST + INTERVAL - 0.1)[HERE] == ("initial", FIRST_CHECKS)
    assert site.at(FIRST + INTERVAL)[HERE] == ("healthy", None)
    states = []
    for number, up in enumerate((set[str](), {HERE}, set[str](), set[str]()), start=2):
        site.up = up
        states.append(site.at(FIRST + number * INTERVAL)[HERE])
    assert states == [*[("healthy", None)] * 3, ("unhealthy", FAILED_CHECKS)]
    assert site.told == ["target_registered", "target_healthy", "target_unhealthy"]


def test_a_groups_new_schedule_counts_from_then_on(site: Site) -> None:
    site.build("a", "b")
    before = site.group_inputs()
    existing = Existing(resource("targetGroup"), site.group, before, before)
    fresh = site.group_inputs(healthyThreshold=3, interval=10)
    adapter("targetGroup").update(Aws(), existing, fresh)
    site.up = {HERE}
    site.register(HERE)
    states = [site.at(FIRST + 10 * n)[HERE][0] for n in range(3)]
    assert states == ["initial", "initial", "healthy"]


def test_a_target_in_a_zone_the_balancer_does_not_stand_in_is_not_in_use(site: Site) -> None:
    site.build("a")
    site.up = {HERE, THERE, ELSEWHERE}
    # An address outside the VPC has no zone: AWS takes it for one of all.
    site.register(HERE, THERE, ELSEWHERE)
    site.at(FIRST)
    found = site.at(FIRST + INTERVAL)
    assert found[THERE] == ("unused", NOT_IN_USE)
    assert found[HERE] == found[ELSEWHERE] == ("healthy", None)
    site.elb.set_subnets(LoadBalancerArn=site.balancer, Subnets=list(site.subnets.values()))
    site.at(FIRST + 2 * INTERVAL)
    assert site.at(FIRST + 3 * INTERVAL)[THERE] == ("healthy", None)


def test_not_even_a_balancer_that_fails_open_sends_traffic_where_it_does_not_stand(
    site: Site,
) -> None:
    site.build("a")
    site.register(HERE, THERE)
    site.at(FIRST)
    site.at(FIRST + INTERVAL)
    (listener,) = forwarding()
    assert listener["targets"] == [{"id": HERE, "port": PORT, "state": "unhealthy"}]


def test_a_target_drains_for_its_groups_delay(site: Site) -> None:
    site.build("a", "b")
    site.register(HERE)
    targets = [{"Id": HERE, "Port": PORT}]
    site.elb.deregister_targets(TargetGroupArn=site.group, Targets=targets)
    site.clock.now = 20.0
    site.elb.deregister_targets(TargetGroupArn=site.group, Targets=targets)
    assert site.at(29.9)[HERE][0] == "draining"
    assert HERE not in site.at(30.0)


def test_a_deleted_listener_leaves_its_targets_unused(site: Site) -> None:
    site.build("a", "b")
    site.register(HERE)
    (listener,) = site.elb.describe_listeners(LoadBalancerArn=site.balancer)["Listeners"]
    made = Existing(resource("listener"), listener["ListenerArn"], {}, {})
    adapter("listener").delete(Aws(), made)
    assert site.health()[HERE] == ("unused", NOT_IN_USE)
