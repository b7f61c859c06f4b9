"""What one line of a bill is: what it bought, whose it is, why bytes moved, what it may save."""

from collections.abc import Mapping
from typing import Any

from spark.rules import line as rules
from spark.rules.line import REGION_PREFIX, Described, Raw, describe, is_discount
from spark.rules.meters import (
    METERS,
    Component,
    Easy,
    Flow,
    Meter,
    billed_part,
    component_meter,
    easy_finding,
    is_found,
)
from spark.tables import USAGE
from spark.tag_keys import OURS, KafkaTags
from tests.every_case import every_case

CLUSTER, POOL = "user_stillwater_cluster", "user_stillwater_pool"
CLAIM, NODE_GROUP = "user_kubernetes_io_created_for_pvc_name", "user_eks_nodegroup_name"
Tags = Mapping[str, str | None]
Texts = Mapping[str, Any]
ANYONE: Tags = {}
OF_CLUSTER: Tags = {CLUSTER: "harbour"}
BROKERS: Tags = {**OF_CLUSTER, POOL: "broker"}
SYSTEM: Tags = {NODE_GROUP: "local-harbour-system"}
LINE: Texts = {
    **dict.fromkeys(Raw._fields),
    "provider": "AWS", "account": "123456789012", "currency": "USD", "category": "Usage",
    "service": "AmazonEC2", "usage_type": "BoxUsage:r7g.large", "operation": "RunInstances",
    "unit": "Hrs", "resource_id": "i-1", "zone": "us-east-1a", "tag_names": (), "tag_values": (),
    "is_priced": True,
}  # fmt: skip
# A line of FOCUS, which has no usage type.
FOCUS: Texts = {
    "usage_type": None,
    "operation": None,
    "service": "Amazon Elastic Compute Cloud",
    "description": "$0.1071 per On Demand Linux r7g.large Instance Hour",
    "unit": "Hours",
}
UNUSED = "$0.1 per Unused Reservation Linux r7g.large Instance Hour"
MOVED = {"usage_type": "DataTransfer-Regional-Bytes", "operation": "InterZone-In", "unit": "GB"}
STREAMING = KafkaTags("team", "streaming")


def raw(tags: Tags | None = None, **texts: Any) -> Raw:
    named = tags or {}
    tagged = {"tag_names": tuple(named), "tag_values": tuple(named.values())}
    return Raw(**{**LINE, **tagged, **texts})


def described(tags: Tags | None = None, kafka: KafkaTags = OURS, **texts: Any) -> Described:
    return describe(raw(tags, **texts), kafka)


def test_a_line_has_the_names_of_the_tables_that_it_comes_from_and_goes_to() -> None:
    days = ("billing_period", "day")
    keys = USAGE.schema.names[len(days) : USAGE.schema.names.index("node_id") + 1]
    assert [*Described._fields[: len(keys)]] == keys


# --- What it bought.


@every_case(
    ("tags", "texts", "component"),
    [
        # Taxes, credits, refunds and fees buy no component.
        *(
            (BROKERS, {"category": category}, "other")
            for category in (
                *("Tax", "Credit", "Refund", "Fee", "RIFee", "SavingsPlanRecurringFee"),
                *("SavingsPlanUpfrontFee", "Purchase", "Adjustment", "Unused commitment"),
            )
        ),
        # A discount on a component stays with it, of an export without a category, too.
        *(
            (BROKERS, {"category": category}, "broker compute")
            for category in ("EdpDiscount", "SavingsPlanNegation", "DiscountedUsage", None)
        ),
        # The nodes of EKS's groups are no brokers, and neither is what nothing says is Kafka's.
        ({**OF_CLUSTER, **SYSTEM}, {}, "other"),
        ({**BROKERS, **SYSTEM}, {}, "other"),
        (OF_CLUSTER, {}, "other"),
        (BROKERS, {}, "broker compute"),
        (ANYONE, {}, "EC2 instances"),
        (ANYONE, {"category": "EdpDiscount"}, "EC2 instances"),
        # Bytes of a zone, or without a price, are not between zones.
        (ANYONE, {"usage_type": MOVED["usage_type"], "is_priced": False}, "inter-AZ transfer"),
        (ANYONE, {"usage_type": "DataTransfer-xAZ-In-Bytes"}, "inter-AZ transfer"),
        (ANYONE, {"usage_type": "DataTransfer-xAZ-In-Bytes", "is_priced": False}, "other"),
        (ANYONE, {"usage_type": "DataTransfer-AZ-Out-Bytes"}, "other"),
        # Another provider's virtual machine is none.
        *(
            (BROKERS, {**texts, "provider": provider}, component)
            for texts in ({}, FOCUS)
            for component, providers in (
                ("broker compute", ("AWS", " AISPL ", "Amazon Web Services, Inc.")),
                ("other", ("AWS Marketplace", "AWSome", "Microsoft")),
                ("other", ("AWS (Acme Marketplace)", "NULL", None)),
            )
            for provider in providers
        ),
        # For what EMR adds to hours that EC2 bills.
        (BROKERS, {"service": "ElasticMapReduce"}, "other"),
        (ANYONE, {"service": "Amazon EMR"}, "other"),
        # The fee of EKS Auto Mode is Kafka's where its machine is.
        (BROKERS, {"usage_type": "EKS-Auto:m7i.large"}, "broker compute"),
        (ANYONE, {"usage_type": "EKS-Auto:m7i.large"}, "other"),
        # Reserved capacity that nothing ran in, whatever its description says.
        (BROKERS, {**FOCUS, "usage_type": "UnusedBox:r7g.large"}, "other"),
        (BROKERS, {**FOCUS, "description": UNUSED}, "other"),
        # A second view of a node's money, of any seller and any kind.
        (ANYONE, {"operation": "EKSPod-EC2", "provider": None}, Component.SPLIT),
        (ANYONE, {"usage_type": "USE1-EKS-EC2-vCPU-Hours", "category": "Tax"}, Component.SPLIT),
        # Whatever MSK sells, by whatever meter.
        (ANYONE, {"service": "AmazonMSK", "usage_type": "USE1-New"}, Component.MANAGED_KAFKA),
        (BROKERS, {"reason": "no day"}, Component.UNREADABLE),
        (ANYONE, {"reason": "", "operation": "EKSPod-EC2"}, Component.UNREADABLE),
    ],
)
def test_a_line_bought_what_its_meter_and_owner_say(
    tags: Tags, texts: Texts, component: str
) -> None:
    line = described(tags, **texts)
    assert line.component == component
    assert line.is_unreadable is ("reason" in texts)


@every_case(
    ("usage_type", "cut"),
    [
        ("EBS:VolumeUsage.gp3", "EBS:VolumeUsage.gp3"),
        ("EU-EBS:VolumeUsage.gp3", "EBS:VolumeUsage.gp3"),
        ("USE1-CAN1-AWS-Out-Bytes", "AWS-Out-Bytes"),
        ("USE1-WL1-BOS1-BoxUsage:t3.medium", "BoxUsage:t3.medium"),
        ("ECS-EC2-GB-Hours", "ECS-EC2-GB-Hours"),
        ("EMR-SERVERLESS-ARM-vCPUHours", "EMR-SERVERLESS-ARM-vCPUHours"),
        ("USE1-EKS-EC2-vCPU-Hours", "EKS-EC2-vCPU-Hours"),
        # What is all prefix is a usage type still, and none that FOCUS's texts would stand for.
        ("USE1-", ""),
    ],
)
def test_a_region_prefix_is_cut_off_and_nothing_else_is(usage_type: str, cut: str) -> None:
    assert described(usage_type=usage_type).usage_type == cut


def test_texts_are_tidied() -> None:
    line = described(usage_type=" USE1-LCUUsage ", currency=" usd", unit="n/a", service="")
    assert (line.usage_type, line.currency, line.unit, line.service) == (
        *("LCUUsage", "USD", None, None),
    )


@every_case(
    ("category", "expected"),
    [
        *((kind, True) for kind in ("EdpDiscount", "PrivateRateDiscount", " BundledDiscount ")),
        *((kind, False) for kind in ("Usage", "Credit", "DiscountedUsage", None)),
    ],
)
def test_a_discount_is_a_line_of_its_own(category: str | None, *, expected: bool) -> None:
    assert is_discount(described(category=category).category) is expected


# --- Why bytes moved, and what is easily saved.


@every_case(
    ("tags", "texts", "flow"),
    [
        (BROKERS, {}, Flow.UNEXPLAINED),
        (BROKERS, {"operation": None}, Flow.UNEXPLAINED),
        (BROKERS, {"operation": "VPCPeering-In"}, Flow.PEERING),
        (BROKERS, {"usage_type": "USE1-VpcPeering-In-Bytes"}, Flow.PEERING),
        (BROKERS, {"operation": "LoadBalancing-Out"}, Flow.LOAD_BALANCER_ZONES),
        (BROKERS, {"resource_id": "arn:aws:x:loadbalancer/net/y"}, Flow.LOAD_BALANCER_ZONES),
        # One that is not Kafka's is known by the operation alone.
        (ANYONE, {"resource_id": "arn:aws:x:loadbalancer/net/y"}, Flow.UNEXPLAINED),
        (BROKERS, {"usage_type": "DataTransfer-xAZ-Out-Bytes"}, Flow.UNEXPLAINED),
        (BROKERS, {"usage_type": "VpcEndpoint-Bytes"}, Flow.PRIVATELINK),
        (BROKERS, {"usage_type": "LCUUsage"}, Flow.LOAD_BALANCER),
        (BROKERS, {"usage_type": "BoxUsage:r7g.large"}, None),
        (BROKERS, {"category": "Tax"}, None),
        (BROKERS, {"reason": "no day"}, None),
    ],
)
def test_why_bytes_moved_is_what_a_lines_own_meter_says(
    tags: Tags, texts: Texts, flow: Flow | None
) -> None:
    assert described(tags, **{**MOVED, **texts}).flow == flow


SNAPSHOT = {"usage_type": "EBS:SnapshotUsage"}
SNAPSHOT_TEXT = "$0.05 per GB-Month of snapshot data stored"


@every_case(
    ("texts", "easy"),
    [
        ({"usage_type": "USE1-AmazonEKS-Hours:extendedSupport"}, Easy.EXTENDED_SUPPORT),
        ({"usage_type": "USE1-AmazonEKS-Hours:perCluster"}, None),
        ({"usage_type": "EU-UnusedBox:m5.xlarge"}, Easy.IDLE_RESERVATION),
        ({"usage_type": "PublicIPv4:IdleAddress"}, Easy.IDLE_IPV4),
        ({"usage_type": "PublicIPv4:InUseAddress"}, Easy.PUBLIC_IPV4),
        ({"usage_type": "EBS:VolumeUsage.gp2"}, Easy.GP2_VOLUMES),
        ({"usage_type": "EBS:VolumeUsage.gp3"}, None),
        ({"usage_type": "EBS:VolumeP-IOPS.io2.tier2"}, Easy.OLD_VOLUMES),
        ({"usage_type": "NatGateway-Bytes"}, Easy.NAT_BYTES),
        ({"usage_type": "DataTransfer-Out-Bytes"}, Easy.INTERNET),
        ({**MOVED, "operation": "LoadBalancing-In"}, Easy.CROSS_ZONE_LB),
        (MOVED, None),
        ({**MOVED, "operation": None}, None),
        # What was given back on a meter cannot be saved again, but for a discount on what is paid.
        (SNAPSHOT, Easy.SNAPSHOTS),
        ({**SNAPSHOT, "category": "EdpDiscount"}, Easy.SNAPSHOTS),
        ({**SNAPSHOT, "category": "Refund"}, None),
        ({**SNAPSHOT, "category": None}, None),
        ({**SNAPSHOT, "provider": "AWS Marketplace"}, None),
        # Fees of commitments are those that nothing used.
        ({"category": "RIFee"}, Easy.UNUSED_COMMITMENT),
        ({"category": "SavingsPlanRecurringFee"}, Easy.UNUSED_COMMITMENT),
        ({**FOCUS, "category": "Unused commitment"}, Easy.UNUSED_COMMITMENT),
        ({"category": "RIFee", "provider": None}, None),
        # FOCUS says it in words, which count where there is no usage type.
        ({**FOCUS, "description": UNUSED}, Easy.IDLE_RESERVATION),
        ({**FOCUS, "description": SNAPSHOT_TEXT}, Easy.SNAPSHOTS),
        ({"description": SNAPSHOT_TEXT}, None),
        # Of two, the first in the order of Easy.
        ({**FOCUS, "description": "Idle public IPv4, data transfer to internet"}, Easy.IDLE_IPV4),
    ],
)
def test_what_is_easily_saved_is_known_by_its_meter(texts: Texts, easy: Easy | None) -> None:
    assert described(**texts).easy == described(BROKERS, **texts).easy == easy


# --- Whose it is: by what, of which cluster, whose in it, of which node.

Owner = tuple[str, str | None, str, int | None]
WHOLE: Owner = ("cluster", "harbour", "whole cluster", None)
NOBODYS: Owner = ("unattributed", None, "unattributed", None)
NODE_10: Owner = ("node pool", "harbour", "broker-a", 10)
POOL_A: Owner = ("node pool", "harbour", "broker-a", None)
NAMED = KafkaTags(name="harbour")
DOTTED = KafkaTags(name="a.b+c")


@every_case(
    ("tags", "kafka", "zone", "expected"),
    [
        # A volume belongs to the node that its claim names.
        *(
            ({**OF_CLUSTER, CLAIM: claim}, OURS, None, expected)
            for claim, expected in (
                ("data-0-harbour-broker-a-10", NODE_10),
                ("data-0-other-broker-a-10", ("node pool", "harbour", "other-broker-a", 10)),
                ("data-0-harbour--10", ("cluster", "harbour", "whole cluster", 10)),
                ("data-0-harbour-broker-a-2147483648", POOL_A),
                ("prometheus-0", WHOLE),
            )
        ),
        # A claim alone may be anybody's, but where the cluster is known.
        ({CLAIM: "data-0-harbour-broker-a-10"}, OURS, None, NOBODYS),
        ({CLAIM: "data-0-harbour-broker-a-10"}, NAMED, None, NODE_10),
        ({CLAIM: "data-0-postgres-broker-a-10"}, NAMED, None, NOBODYS),
        # A name's own dots and pluses are no pattern.
        ({CLAIM: "data-0-a.b+c-broker-a-10"}, DOTTED, None, ("node pool", "a.b+c", "broker-a", 10)),
        ({CLAIM: "data-0-axbbc-broker-a-10"}, DOTTED, None, NOBODYS),
        # An instance belongs to the pool of its tag in its zone.
        (BROKERS, OURS, "us-east-1a", POOL_A),
        (BROKERS, OURS, "us-east-1-bos-1a ", POOL_A),
        # Of a zone's id, or without any, no pool is known.
        (BROKERS, OURS, "use1-az1", WHOLE),
        (BROKERS, OURS, "NULL", WHOLE),
        ({POOL: "broker"}, OURS, "use1-az1", ("node pool", None, "broker", None)),
        ({POOL: "broker"}, OURS, "us-east-1b", ("node pool", None, "broker-b", None)),
        (OF_CLUSTER, OURS, "us-east-1a", WHOLE),
        (ANYONE, OURS, "us-east-1a", NOBODYS),
        # An instance's own pool comes before a claim's.
        (
            {**BROKERS, CLAIM: "data-0-harbour-other-a-7"}, OURS, "us-east-1b",
            ("node pool", "harbour", "broker-b", 7),
        ),
        # A tag that says nothing hides no other spelling of it.
        *(
            ({CLUSTER: nothing, "stillwater:cluster": " harbour "}, OURS, None, WHOLE)
            for nothing in ("", "  ", "NULL", None)
        ),
    ],
)  # fmt: skip
def test_a_line_belongs_to_whom_its_tags_name(
    tags: Tags, kafka: KafkaTags, zone: str | None, expected: Owner
) -> None:
    line = described(tags, kafka, zone=zone)
    assert (line.attribution, line.cluster, line.owner, line.node_id) == expected


@every_case(
    "nothing",
    ["-", "n/a", "N/A", "#N/A", "(null)", "<null>", "nil", "none", "\\N", "NULL", " ", "", "nan"],
)
def test_what_people_write_for_nothing_is_no_tag_and_no_account(nothing: str) -> None:
    line = described({CLUSTER: nothing}, account=nothing, usage_type=nothing)
    assert (line.cluster, line.account, line.usage_type) == (None, None, None)
    assert line.attribution == "unattributed"


def test_tags_that_are_damaged_say_what_is_left_of_them() -> None:
    twice = raw(tag_names=(CLUSTER, CLUSTER), tag_values=("harbour", "other"))
    short = raw(tag_names=(CLUSTER, POOL), tag_values=("harbour",))
    assert {describe(each, OURS).cluster for each in (twice, short)} == {"harbour"}
    assert describe(short, OURS).attribution == "cluster"


@every_case(
    ("resource_id", "cluster", "component"),
    [("i-1", "harbour", "broker compute"), ("i-2", None, "EC2 instances")],
)
def test_an_instance_of_the_ledger_is_kafkas_without_a_tag(
    resource_id: str, cluster: str | None, component: str
) -> None:
    kafka = KafkaTags(name="harbour", resources=frozenset({"i-1"}))
    line = described({}, kafka, resource_id=resource_id)
    kept = resource_id if cluster else None
    assert (line.resource_id, line.cluster, line.component) == (kept, cluster, component)
    # Whatever tags it lost: one with a cluster's alone would be a system's node.
    lost = described(OF_CLUSTER, kafka, resource_id=resource_id)
    assert lost.component == (component if cluster else "other")


def test_lines_of_nobody_are_one_whatever_their_resource_zone_and_tags() -> None:
    tags = ({"user_name": f"box {n}", "user_team": "web", NODE_GROUP: f"{n}"} for n in range(3))
    lines = {
        described(each, resource_id=f"i-{n}", zone=f"us-east-1{'abc'[n]}")
        for n, each in enumerate(tags)
    }
    assert [(line.resource_id, line.zone) for line in lines] == [(None, None)]


@every_case(
    ("tags", "is_kafka"),
    [
        ({"user_team": "streaming"}, True),
        ({"user_team": " streaming "}, True),
        ({"resourceTags/team": "streaming", "accountTag/team": "web"}, True),
        ({"costCategory/team": "streaming"}, True),
        ({"accountTag/team": "streaming"}, True),
        ({"resourceTags/team": "web", "accountTag/team": "streaming"}, False),
        ({"userAttribute/team": "streaming"}, False),
        ({"user_team": "web"}, False),
        ({CLUSTER: "streaming"}, False),
        ({}, False),
    ],
)
def test_a_tag_or_cost_category_of_the_users_own_means_kafka(tags: Tags, *, is_kafka: bool) -> None:
    line = described(tags, STREAMING)
    assert line.cluster == ("streaming" if is_kafka else None)
    # Nothing says pools: its instances are brokers'.
    assert line.component == ("broker compute" if is_kafka else "EC2 instances")


def test_a_value_that_means_kafka_is_called_as_the_cluster_is() -> None:
    tags = {"user_team": "streaming"}
    assert described(tags, KafkaTags("team", "streaming", name="harbour")).cluster == "harbour"
    # With a tag for pools, an instance without it is none of theirs.
    own = described(tags, KafkaTags("team", "streaming", pool="role"))
    assert own.component == "other"


# --- Meters: usage types as real bills have them.

# GovCloud's, China's, a Local Zone's, a Wavelength Zone's and the Sovereign Cloud's among them.
PLACES = (
    *("", "APS1-", "EU-", "USW2-", "UGW1-", "CNN1-", "CNW1-"),
    *("LAX1-", "USW2-LAX1-", "USE1-WL1-BOS1-", "USE1-WL1-BOS1-USW2-", "EUSCDEE1-", "APS10-"),
)
BOUGHT = {
    "broker compute": """BoxUsage:r7g.large BoxUsage SpotUsage:m7g.large HostBoxUsage:r7g.large
        ReservedHostUsage:r7g CPUCredits:t4g EKS-Auto:m7i.large-management-hours""",
    "gp3 storage": "EBS:VolumeUsage.gp3.outposts EBS:VolumeUsage.gp3",
    "gp3 IOPS": "EBS:VolumeP-IOPS.gp3",
    "gp3 throughput": "EBS:VolumeP-Throughput.gp3",
    "other volumes": "EBS:VolumeUsage.gp2.outposts EBS:VolumeUsage.gp2 EBS:VolumeP-IOPS.io2",
    "snapshots": "EBS:SnapshotUsage EBS:directAPI.snapshot.Get",
    "public IPv4": "ElasticIP:IdleAddress PublicIPv4:InUseAddress",
    "load balancer": """ReservedLCUUsage Outposts-LoadBalancerUsage TS-LoadBalancerUsage
        LoadBalancerUsage LCUUsage""",
    "control plane": """AmazonEKS-Local-Outposts-Hours:perCluster AmazonEKS-Hours:perCluster
        AmazonEKS-Hours:extendedSupport AmazonEKS-Hours:XL-ProvisionedTier
        AmazonEKSCapabilities-ArgoCD-Hours:perCapability AmazonEKSHybridNodes-Hours:pervCPU
        AmazonEKSCapabilities-ACK-CR-Hours:perCustomResource""",
    "inter-AZ transfer": """DataTransfer-Regional-Bytes DataTransfer-xAZ-Out-Bytes
        VpcPeering-In-Bytes""",
    "internet egress": "DataTransfer-Out-Bytes",
    "NAT gateway": "NatGateway-Hours RegionalNatGateway-Bytes NatGateway-Prvd-Gbps",
    "PrivateLink": """VpcResource-Consumer-Bytes VpcEndpoint-Bytes VpcEndpoint-Service-Hours
        VpcEndpoint-GWLBE-Bytes""",
    Component.REPORTS: "EMR-SERVERLESS-ARM-vCPUHours",
    Component.MANAGED_KAFKA: "Kafka.m7g.large Kafka.Storage.GP2 KafkaServerless-ClusterHours",
    "other": """DataProcessing-Bytes CPUCredits:db.t4g DataTransfer-AZ-In-Bytes UnusedBox:m5.xlarge
        EKS-EC2-vCPU-Hours""",
}
BETWEEN_REGIONS = ("USE1-CAN1-AWS-Out-Bytes", "USE1-EU-AWS-Out-Bytes", "EU-APS1-AWS-Out-Bytes")


def component(usage_type: str) -> Component:
    meter = component_meter(REGION_PREFIX.sub("", usage_type), None, None, None)
    return (meter and meter.component) or Component.OTHER


@every_case(
    ("usage_type", "expected"),
    [
        *((each, expected) for expected, types in BOUGHT.items() for each in types.split()),
        *((each, Component.BETWEEN_REGIONS) for each in BETWEEN_REGIONS),
    ],
)
def test_a_usage_type_is_its_component_in_any_region(usage_type: str, expected: str) -> None:
    places = ("",) if usage_type in BETWEEN_REGIONS else PLACES
    assert {component(f"{prefix}{usage_type}") for prefix in places} == {expected}


@every_case("meter", METERS, ids=[meter.example for meter in METERS])
def test_an_example_is_known_by_its_own_row_and_says_what_the_row_says(meter: Meter) -> None:
    known = [each for each in METERS if is_found(each.usage_type, meter.example)]
    assert known[0] is meter
    assert component(meter.example) is (meter.component or Component.OTHER)
    assert billed_part(meter.example) is meter.volume_part
    operation = None if meter.easy_operation is None else "LoadBalancing-In"
    assert easy_finding(meter.example, operation, None) is meter.easy


def test_the_table_of_meters_is_whole() -> None:
    # A row has all of FOCUS's texts or the service alone.
    texts = ("service", "unit", "description")
    given = {tuple(n for n in texts if getattr(meter, n) is not None) for meter in METERS}
    assert given == {(), ("service",), texts}
    # All rows of a component are of one flow.
    flows = {(meter.component, meter.flow) for meter in METERS if meter.flow is not None}
    assert flows == {
        (Component.INTER_AZ, Flow.UNEXPLAINED),
        (Component.LOAD_BALANCER, Flow.LOAD_BALANCER),
        (Component.PRIVATELINK, Flow.PRIVATELINK),
    }
    moving = {component for component, _ in flows}
    assert all(meter.flow is not None for meter in METERS if meter.component in moving)
    # Everything that is easily saved is found by some meter.
    found = {meter.easy for meter in METERS if meter.easy is not None}
    assert found == set(Easy) - {Easy.UNUSED_COMMITMENT}


@every_case(
    ("text", "expected"),
    [
        ("US West (Oregon) data transfer to US East (Northern Virginia)", "inter-region transfer"),
        ("US West (Oregon) data transfer from EU (Germany)", "inter-region transfer"),
        ("$0.00 per GB data transfer out of US East (Ohio) to CloudFront", "internet egress"),
        ("$0.000 per GB - data transfer in per month", None),
        (
            "regional data transfer - in/out/between EC2 AZs or using elastic IPs",
            "inter-AZ transfer",
        ),
    ],
)
def test_bytes_are_told_apart_by_their_text(text: str, expected: str | None) -> None:
    meter = component_meter(None, "Amazon Elastic Compute Cloud", "GB", f"$0.02 per GB - {text}")
    assert (meter and meter.component) == expected


@every_case(
    ("usage_types", "part"),
    [
        ("EBS:VolumeUsage EBS:VolumeUsage.gp2 EBS:VolumeUsage.io2 EBS:VolumeUsage.sc1", "storage"),
        ("EBS:VolumeP-IOPS.piops", "iops"),
        ("EBS:VolumeP-Throughput.gp3", "throughput"),
        ("EBS:SnapshotUsageUnderBilling", "snapshot"),
        ("EBS:VolumeUsage.gp2.outposts EBS:SnapshotArchiveStorage EBS:VolumeIOUsage", None),
    ],
)
def test_a_usage_type_counts_a_part_of_a_volume(usage_types: str, part: str | None) -> None:
    assert {billed_part(each) for each in usage_types.split()} == {part}


@every_case(
    ("pattern", "wanted", "text", "is_there"),
    [
        # Any end of a line is one, and stands before the end of a text.
        (r"^EBS:gp3$", "EBS:gp3", "EBS:gp3\r\n", True),
        (r"^EBS:gp3$", "EBS:gp3", "EBS:gp3\u2028", True),
        (r"^EBS:gp3$", "EBS:gp3", "EBS:gp3\n\n", False),
        # A digit of Arabic, and a letter that Unicode takes for a k.
        (r"^data-\d+$", "data-1", "data-\u0661", False),
        ("(?i)kafka", "Kafka", "\u212aafka", False),
        # A letter with an accent, which goes on with the word.
        (r"\bEMR\b", "EMR", "EMR\u00e9", False),
    ],
)
def test_patterns_find_what_they_found_in_java(
    pattern: str, wanted: str, text: str, *, is_there: bool
) -> None:
    assert is_found(rules.pattern(pattern), wanted)
    assert is_found(rules.pattern(pattern), text) is is_there
