"""Target health of the twin's load balancers, by real connections on the group's own schedule."""

import json
import socket
import time
import urllib.request
from typing import Any

import pytest

from tests.integration.aws.cloud import Cloud

pytestmark = pytest.mark.integration
PORT = 9094
INTERVAL_SECONDS = 5


def forwarded(cloud: Cloud, *, delay_seconds: int = 1) -> tuple[str, str]:
    """Make an NLB whose listener forwards to a new group; return both ARNs."""
    subnets = cloud.network()
    vpc = cloud.ec2.describe_subnets(SubnetIds=subnets)["Subnets"][0]["VpcId"]
    balancer = cloud.elbv2.create_load_balancer(
        Name=cloud.name("nlb"), Type="network", Scheme="internal", Subnets=subnets
    )["LoadBalancers"][0]["LoadBalancerArn"]
    cloud.later(cloud.elbv2.delete_load_balancer, LoadBalancerArn=balancer)
    group = cloud.elbv2.create_target_group(
        Name=cloud.name("tg"),
        Protocol="TCP",
        Port=PORT,
        VpcId=vpc,
        TargetType="ip",
        HealthCheckProtocol="TCP",
        HealthCheckIntervalSeconds=INTERVAL_SECONDS,
        HealthCheckTimeoutSeconds=2,
        HealthyThresholdCount=2,
        UnhealthyThresholdCount=2,
    )["TargetGroups"][0]["TargetGroupArn"]
    cloud.later(cloud.elbv2.delete_target_group, TargetGroupArn=group)
    cloud.elbv2.modify_target_group_attributes(
        TargetGroupArn=group,
        Attributes=[{"Key": "deregistration_delay.timeout_seconds", "Value": str(delay_seconds)}],
    )
    return balancer, group


def listen(cloud: Cloud, balancer: str, group: str, port: int = 10776) -> None:
    """Listen on a port of the twin's one NLB address that is no broker's."""
    made = cloud.elbv2.create_listener(
        LoadBalancerArn=balancer,
        Protocol="TCP",
        Port=port,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": group}],
    )["Listeners"][0]
    cloud.later(cloud.elbv2.delete_listener, ListenerArn=made["ListenerArn"])


def health(cloud: Cloud, group: str) -> dict[tuple[str, int], tuple[str, str | None]]:
    """Return (state, reason) of every target of a group by address and port."""
    found = cloud.elbv2.describe_target_health(TargetGroupArn=group)
    return {
        (entry["Target"]["Id"], entry["Target"]["Port"]): (
            entry["TargetHealth"]["State"],
            entry["TargetHealth"].get("Reason"),
        )
        for entry in found["TargetHealthDescriptions"]
    }


def register(cloud: Cloud, group: str, address: str, *ports: int) -> None:
    targets: list[dict[str, Any]] = [{"Id": address, "Port": port} for port in ports]
    cloud.elbv2.register_targets(TargetGroupArn=group, Targets=targets)


@pytest.mark.long
def test_an_open_port_becomes_healthy_and_a_closed_one_beside_it_does_not(cloud: Cloud) -> None:
    balancer, group = forwarded(cloud)
    listen(cloud, balancer, group)
    address = f"10.{cloud.place.number}.0.21"
    with socket.create_server((cloud.place.socket_address(address), PORT)):
        began = time.monotonic()
        register(cloud, group, address, PORT, PORT + 1)
        assert {state for state, _ in health(cloud, group).values()} == {"initial"}
        cloud.eventually(lambda: health(cloud, group)[address, PORT][0] == "healthy")
        assert time.monotonic() - began >= INTERVAL_SECONDS
        cloud.eventually(lambda: health(cloud, group)[address, PORT + 1][0] == "unhealthy")
    cloud.eventually(lambda: health(cloud, group)[address, PORT][0] == "unhealthy")


def test_a_group_on_no_listener_is_not_in_use(cloud: Cloud) -> None:
    _, group = forwarded(cloud)
    address = f"10.{cloud.place.number}.0.22"
    register(cloud, group, address, PORT)
    assert health(cloud, group)[address, PORT] == ("unused", "Target.NotInUse")


def test_a_deregistered_target_drains_and_then_is_gone(cloud: Cloud) -> None:
    balancer, group = forwarded(cloud)
    listen(cloud, balancer, group)
    address = f"10.{cloud.place.number}.0.23"
    register(cloud, group, address, PORT)
    gone = [{"Id": address, "Port": PORT}]
    cloud.elbv2.deregister_targets(TargetGroupArn=group, Targets=gone)
    assert health(cloud, group)[address, PORT] == ("draining", "Target.DeregistrationInProgress")
    cloud.eventually(lambda: health(cloud, group) == {})
    # AWS takes a target it does not know without a word.
    cloud.elbv2.deregister_targets(TargetGroupArn=group, Targets=gone)


def test_a_network_load_balancer_is_named_as_one(cloud: Cloud) -> None:
    balancer, _ = forwarded(cloud)
    assert ":loadbalancer/net/" in balancer
    found = cloud.elbv2.describe_load_balancers(LoadBalancerArns=[balancer])["LoadBalancers"]
    assert found[0]["DNSName"].endswith(".elb.us-east-1.amazonaws.com")


def test_the_proxy_is_told_what_a_listener_forwards_to(cloud: Cloud) -> None:
    balancer, group = forwarded(cloud)
    listen(cloud, balancer, group, port=10777)
    address = f"10.{cloud.place.number}.0.24"
    register(cloud, group, address, PORT)
    url = cloud.place.url("moto") + "/stillwater/load-balancers"
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - the twin's own address
        entries = json.load(answer)
    (entry,) = [entry for entry in entries if entry["port"] == 10777]
    assert entry["targets"] == [{"id": address, "port": PORT, "state": "initial"}]
