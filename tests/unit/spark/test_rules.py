"""The classification rules against usage types seen on real bills, region prefixes and all."""

from __future__ import annotations

import re

import pytest

from spark.transforms.classify import RULES, Component
from spark.transforms.daily import REGION_PREFIX


def component(usage_type: str) -> Component:
    bare = re.sub(REGION_PREFIX, "", usage_type)
    return next((r.component for r in RULES if re.search(r.usage_type, bare)), Component.OTHER)


# GovCloud's, China's, a Local Zone's, a Wavelength Zone's and the Sovereign Cloud's among them.
PLACES = (
    *("", "APS1-", "EU-", "USW2-", "UGW1-", "CNN1-", "CNW1-"),
    *("LAX1-", "USW2-LAX1-", "USE1-WL1-BOS1-", "USE1-WL1-BOS1-USW2-", "EUSCDEE1-", "APS10-"),
)


@pytest.mark.parametrize("prefix", PLACES)
@pytest.mark.parametrize(
    ("usage_type", "expected"),
    [
        ("BoxUsage:r7g.large", Component.BROKER_COMPUTE),
        ("BoxUsage", Component.BROKER_COMPUTE),
        ("SpotUsage:m7g.large", Component.BROKER_COMPUTE),
        ("HostBoxUsage:r7g.large", Component.BROKER_COMPUTE),
        ("ReservedHostUsage:r7g", Component.BROKER_COMPUTE),
        ("CPUCredits:t4g", Component.BROKER_COMPUTE),
        ("EBS:VolumeUsage.gp2.outposts", Component.OTHER_VOLUMES),
        ("EBS:VolumeUsage.gp3.outposts", Component.GP3_STORAGE),
        ("ElasticIP:IdleAddress", Component.PUBLIC_IPV4),
        ("ReservedLCUUsage", Component.LOAD_BALANCER),
        ("Outposts-LoadBalancerUsage", Component.LOAD_BALANCER),
        ("TS-LoadBalancerUsage", Component.LOAD_BALANCER),
        ("DataProcessing-Bytes", Component.OTHER),
        ("CPUCredits:db.t4g", Component.OTHER),
        ("AmazonEKS-Local-Outposts-Hours:perCluster", Component.CONTROL_PLANE),
        ("EBS:VolumeUsage.gp3", Component.GP3_STORAGE),
        ("EBS:VolumeUsage.gp2", Component.OTHER_VOLUMES),
        ("EBS:VolumeP-IOPS.gp3", Component.GP3_IOPS),
        ("EBS:VolumeP-IOPS.io2", Component.OTHER_VOLUMES),
        ("EBS:VolumeP-Throughput.gp3", Component.GP3_THROUGHPUT),
        ("EBS:SnapshotUsage", Component.SNAPSHOTS),
        ("DataTransfer-Regional-Bytes", Component.INTER_AZ),
        ("DataTransfer-xAZ-Out-Bytes", Component.INTER_AZ),
        ("DataTransfer-AZ-In-Bytes", Component.OTHER),
        ("VpcPeering-In-Bytes", Component.INTER_AZ),
        ("DataTransfer-Out-Bytes", Component.INTERNET),
        ("PublicIPv4:InUseAddress", Component.PUBLIC_IPV4),
        ("UnusedBox:m5.xlarge", Component.OTHER),
        ("LoadBalancerUsage", Component.LOAD_BALANCER),
        ("LCUUsage", Component.LOAD_BALANCER),
        ("AmazonEKS-Hours:perCluster", Component.CONTROL_PLANE),
        ("AmazonEKS-Hours:extendedSupport", Component.CONTROL_PLANE),
        ("EKS-EC2-vCPU-Hours", Component.OTHER),
        ("EKS-Auto:m7i.large-management-hours", Component.BROKER_COMPUTE),
        ("AmazonEKS-Hours:XL-ProvisionedTier", Component.CONTROL_PLANE),
        ("AmazonEKSCapabilities-ArgoCD-Hours:perCapability", Component.CONTROL_PLANE),
        ("AmazonEKSCapabilities-ACK-CR-Hours:perCustomResource", Component.CONTROL_PLANE),
        ("AmazonEKSHybridNodes-Hours:pervCPU", Component.CONTROL_PLANE),
        ("NatGateway-Hours", Component.NAT_GATEWAY),
        ("RegionalNatGateway-Bytes", Component.NAT_GATEWAY),
        ("NatGateway-Prvd-Gbps", Component.NAT_GATEWAY),
        ("EBS:directAPI.snapshot.Get", Component.SNAPSHOTS),
        ("VpcResource-Consumer-Bytes", Component.PRIVATELINK),
        ("VpcEndpoint-Bytes", Component.PRIVATELINK),
        ("VpcEndpoint-Service-Hours", Component.PRIVATELINK),
        ("VpcEndpoint-GWLBE-Bytes", Component.PRIVATELINK),
        ("EMR-SERVERLESS-ARM-vCPUHours", Component.REPORTS),
        ("Kafka.m7g.large", Component.MANAGED_KAFKA),
        ("Kafka.Storage.GP2", Component.MANAGED_KAFKA),
        ("KafkaServerless-ClusterHours", Component.MANAGED_KAFKA),
    ],
)
def test_a_usage_type_is_its_component_in_any_region(
    prefix: str, usage_type: str, expected: Component
) -> None:
    assert component(prefix + usage_type) is expected


@pytest.mark.parametrize("between", ["USE1-CAN1", "USE1-EU", "EU-APS1"])
def test_bytes_between_two_regions_are_not_between_zones(between: str) -> None:
    assert component(f"{between}-AWS-Out-Bytes") is Component.BETWEEN_REGIONS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "$0.02 per GB - US West (Oregon) data transfer to US East (Northern Virginia)",
            Component.BETWEEN_REGIONS,
        ),
        (
            "$0.00 per GB - US West (Oregon) data transfer from EU (Germany)",
            Component.BETWEEN_REGIONS,
        ),
        ("$0.00 per GB data transfer out of US East (Ohio) to CloudFront", Component.INTERNET),
        ("$0.000 per GB - data transfer in per month", None),
        (
            "$0.010 per GB - regional data transfer - in/out/between EC2 AZs or using elastic IPs",
            Component.INTER_AZ,
        ),
    ],
)
def test_bytes_are_told_apart_by_their_text(text: str, expected: Component | None) -> None:
    found = (
        rule.component
        for rule in RULES
        if re.search(rule.unit, "GB")
        and re.search(rule.service, "Amazon Elastic Compute Cloud")
        and re.search(rule.description, text)
    )
    assert next(found, None) is expected
