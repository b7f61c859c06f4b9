"""Target health of the twin's load balancers, by real connections on the group's own schedule."""

import socket
import time

import pytest

from tests.integration.aws.cloud import Cloud

pytestmark = [pytest.mark.integration, pytest.mark.long]
PORT = 9094
INTERVAL_SECONDS = 5


def forwarded(cloud: Cloud) -> str:
    """Make an NLB whose listener forwards to a new group; return the group's ARN."""
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
    made = cloud.elbv2.create_listener(
        LoadBalancerArn=balancer,
        Protocol="TCP",
        # Of the twin's one NLB address, and no broker's.
        Port=10776,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": group}],
    )["Listeners"][0]
    cloud.later(cloud.elbv2.delete_listener, ListenerArn=made["ListenerArn"])
    return str(group)


def health(cloud: Cloud, group: str) -> dict[int, str]:
    """Return the state of every target of a group by its port."""
    found = cloud.elbv2.describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"]
    return {each["Target"]["Port"]: each["TargetHealth"]["State"] for each in found}


def test_an_open_port_becomes_healthy_and_a_closed_one_beside_it_does_not(cloud: Cloud) -> None:
    group = forwarded(cloud)
    address = f"10.{cloud.place.number}.0.21"
    with socket.create_server((cloud.place.socket_address(address), PORT)):
        began = time.monotonic()
        targets = [{"Id": address, "Port": port} for port in (PORT, PORT + 1)]
        cloud.elbv2.register_targets(TargetGroupArn=group, Targets=targets)
        assert health(cloud, group) == {PORT: "initial", PORT + 1: "initial"}
        cloud.eventually(lambda: health(cloud, group)[PORT] == "healthy")
        assert time.monotonic() - began >= INTERVAL_SECONDS
        cloud.eventually(lambda: health(cloud, group)[PORT + 1] == "unhealthy")
    cloud.eventually(lambda: health(cloud, group)[PORT] == "unhealthy")
