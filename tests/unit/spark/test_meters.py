"""The table of meters against usage types seen on real bills, region prefixes and all."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spark.rules import line
from spark.rules.line import REGION_PREFIX
from spark.rules.meters import (
    METERS,
    Component,
    Easy,
    Flow,
    Meter,
    VolumePart,
    billed_part,
    component_meter,
    easy_finding,
    is_found,
)

# GovCloud's, China's, a Local Zone's, a Wavelength Zone's and the Sovereign Cloud's among them.
PLACES = (
    *("", "APS1-", "EU-", "USW2-", "UGW1-", "CNN1-", "CNW1-"),
    *("LAX1-", "USW2-LAX1-", "USE1-WL1-BOS1-", "USE1-WL1-BOS1-USW2-", "EUSCDEE1-", "APS10-"),
)
TEXTS = ("service", "unit", "description")


def component(usage_type: str) -> Component:
    meter = component_meter(REGION_PREFIX.sub("", usage_type), None, None, None)
    return (meter and meter.component) or Component.OTHER


@pytest.mark.parametrize("meter", METERS, ids=[meter.example for meter in METERS])
def test_an_example_is_known_by_its_own_row_and_says_what_the_row_says(meter: Meter) -> None:
    known = [each for each in METERS if is_found(each.usage_type, meter.example)]
    assert known[0] is meter
    assert component(meter.example) is (meter.component or Component.OTHER)
    assert billed_part(meter.example) is meter.volume_part
    operation = None if meter.easy_operation is None else "LoadBalancing-In"
    assert easy_finding(meter.example, operation, None) is meter.easy


def test_a_row_has_all_of_focus_texts_or_the_service_alone() -> None:
    given = [tuple(n for n in TEXTS if getattr(meter, n) is not None) for meter in METERS]
    assert set(given) == {(), ("service",), TEXTS}


def test_all_rows_of_a_component_are_of_one_flow() -> None:
    assert {(meter.component, meter.flow) for meter in METERS if meter.flow is not None} == {
        (Component.INTER_AZ, Flow.UNEXPLAINED),
        (Component.LOAD_BALANCER, Flow.LOAD_BALANCER),
        (Component.PRIVATELINK, Flow.PRIVATELINK),
    }
    moving = {meter.component for meter in METERS if meter.flow is not None}
    assert all(meter.flow is not None for meter in METERS if meter.component in moving)


def test_everything_that_is_easily_saved_is_found_by_some_meter() -> None:
    found = {meter.easy for meter in METERS if meter.easy is not None}
    assert found == set(Easy) - {Easy.UNUSED_COMMITMENT}


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
    meter = component_meter(None, "Amazon Elastic Compute Cloud", "GB", text)
    assert (meter and meter.component) is expected


@pytest.mark.parametrize(
    ("usage_type", "part"),
    [
        ("EBS:VolumeUsage", VolumePart.STORAGE),
        ("EBS:VolumeUsage.gp2", VolumePart.STORAGE),
        ("EBS:VolumeUsage.io2", VolumePart.STORAGE),
        ("EBS:VolumeUsage.sc1", VolumePart.STORAGE),
        ("EBS:VolumeUsage.gp2.outposts", None),
        ("EBS:VolumeP-IOPS.piops", VolumePart.IOPS),
        ("EBS:VolumeP-Throughput.gp3", VolumePart.THROUGHPUT),
        ("EBS:SnapshotUsageUnderBilling", VolumePart.SNAPSHOT),
        ("EBS:SnapshotArchiveStorage", None),
        ("EBS:VolumeIOUsage", None),
    ],
)
def test_a_usage_type_counts_a_part_of_a_volume(usage_type: str, part: VolumePart | None) -> None:
    assert billed_part(usage_type) is part


@pytest.mark.parametrize(
    ("text", "wanted", "is_there"),
    [
        # Any end of a line is one, and stands before the end of a text.
        ("EBS:VolumeUsage.gp3\r\n", "EBS:VolumeUsage.gp3", True),
        ("EBS:VolumeUsage.gp3\u2028", "EBS:VolumeUsage.gp3", True),
        ("EBS:VolumeUsage.gp3\n\n", "EBS:VolumeUsage.gp3", False),
        # A digit of Arabic, and a letter that Unicode takes for a k.
        ("data-\u0661", "data-1", False),
        ("\u212aafka", "Kafka", False),
        # A letter with an accent, which goes on with the word.
        ("EMR\u00e9", "EMR", False),
    ],
)
def test_patterns_find_what_they_found_in_java(text: str, wanted: str, *, is_there: bool) -> None:
    patterns = {
        "EBS:VolumeUsage.gp3": r"^EBS:VolumeUsage\.gp3$",
        "data-1": r"^data-\d+$",
        "Kafka": "(?i)kafka",
        "EMR": r"\bEMR\b",
    }
    assert is_found(line.pattern(patterns[wanted]), wanted)
    assert is_found(line.pattern(patterns[wanted]), text) is is_there


def test_rules_need_neither_spark_nor_arrow() -> None:
    blocked = "import sys; sys.modules.update(dict.fromkeys(('pyspark', 'pyarrow', 'py4j')))"
    program = f"{blocked}; from spark.rules import line; print(line.Component.OTHER)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "other"
