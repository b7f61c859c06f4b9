"""What one line of a bill is: what it bought, whose it is, why bytes moved, what it may save."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark.rules.line import Described, Raw, describe, is_discount
from spark.rules.meters import Attribution, Component, Easy, Flow
from spark.tables import USAGE
from spark.tag_keys import OURS, KafkaTags
from tests.every_case import every_case

CLUSTER, POOL = "user_stillwater_cluster", "user_stillwater_pool"
CLAIM, NODE_GROUP = "user_kubernetes_io_created_for_pvc_name", "user_eks_nodegroup_name"
BROKERS = {CLUSTER: "harbour", POOL: "broker"}
LINE: Mapping[str, Any] = {
    **dict.fromkeys(Raw._fields),
    "provider": "AWS",
    "account": "123456789012",
    "currency": "USD",
    "category": "Usage",
    "service": "AmazonEC2",
    "usage_type": "BoxUsage:r7g.large",
    "operation": "RunInstances",
    "unit": "Hrs",
    "resource_id": "i-1",
    "zone": "us-east-1a",
    "tag_names": (),
    "tag_values": (),
    "is_priced": True,
}
# A line of FOCUS, which has no usage type.
FOCUS: Mapping[str, Any] = {
    "usage_type": None,
    "operation": None,
    "service": "Amazon Elastic Compute Cloud",
    "description": "$0.1071 per On Demand Linux r7g.large Instance Hour",
    "unit": "Hours",
}
UNUSED = "$0.1 per Unused Reservation Linux r7g.large Instance Hour"
STREAMING = KafkaTags("team", "streaming")


def raw(tags: Mapping[str, str | None] | None = None, **texts: Any) -> Raw:
    named = tags or {}
    tagged = {"tag_names": tuple(named), "tag_values": tuple(named.values())}
    return Raw(**{**LINE, **tagged, **texts})


def described(
    tags: Mapping[str, str | None] | None = None, kafka: KafkaTags = OURS, **texts: Any
) -> Described:
    return describe(raw(tags, **texts), kafka)


def owner(line: Described) -> tuple[str, str | None, str, int | None]:
    return line.attribution, line.cluster, line.owner, line.node_id


def test_a_line_has_the_names_of_the_tables_that_it_comes_from_and_goes_to() -> None:
    days = ("billing_period", "day")
    keys = USAGE.schema.names[len(days) : USAGE.schema.names.index("node_id") + 1]
    assert [*Described._fields[: len(keys)]] == keys


# --- What it says: of which texts, beside which tags.

MOVED = {"usage_type": "DataTransfer-Regional-Bytes", "operation": "InterZone-In", "unit": "GB"}
SYSTEM = {NODE_GROUP: "local-harbour-system"}
ANYONE: Mapping[str, str] = {}


@every_case(
    ("tags", "texts", "component"),
    [
        # Taxes, credits, refunds and fees buy no component.
        *(
            (BROKERS, {"category": category}, Component.OTHER)
            for category in (
                *("Tax", "Credit", "Refund", "Fee", "RIFee", "SavingsPlanRecurringFee"),
                *("SavingsPlanUpfrontFee", "Purchase", "Adjustment", "Unused commitment"),
            )
        ),
        # A discount on a component stays with it, of an export without a category, too.
        *(
            (BROKERS, {"category": category}, Component.BROKER_COMPUTE)
            for category in ("EdpDiscount", "SavingsPlanNegation", "DiscountedUsage", None)
        ),
        # The nodes of EKS's groups are no brokers, and neither is what nothing says is Kafka's.
        ({CLUSTER: "harbour", **SYSTEM}, {}, Component.OTHER),
        ({**BROKERS, **SYSTEM}, {}, Component.OTHER),
        ({CLUSTER: "harbour"}, {}, Component.OTHER),
        (BROKERS, {}, Component.BROKER_COMPUTE),
        *((ANYONE, {"category": kind}, Component.INSTANCES) for kind in ("Usage", "EdpDiscount")),
        # Bytes of a zone, or without a price, are not between zones.
        (ANYONE, {"usage_type": MOVED["usage_type"], "is_priced": False}, Component.INTER_AZ),
        (ANYONE, {"usage_type": "DataTransfer-xAZ-In-Bytes"}, Component.INTER_AZ),
        (ANYONE, {"usage_type": "DataTransfer-xAZ-In-Bytes", "is_priced": False}, Component.OTHER),
        (ANYONE, {"usage_type": "DataTransfer-AZ-Out-Bytes"}, Component.OTHER),
        # Another provider's virtual machine is none.
        *(
            (BROKERS, {**texts, "provider": provider}, component)
            for texts in ({}, FOCUS)
            for provider, component in (
                *((each, Component.BROKER_COMPUTE) for each in ("AWS", " AISPL ")),
                ("Amazon Web Services, Inc.", Component.BROKER_COMPUTE),
                *((each, Component.OTHER) for each in ("AWS Marketplace", "AWSome", "Microsoft")),
                *((each, Component.OTHER) for each in ("AWS (Acme Marketplace)", "NULL", None)),
            )
        ),
        # For what EMR adds to hours that EC2 bills.
        (BROKERS, {"service": "ElasticMapReduce"}, Component.OTHER),
        (ANYONE, {"service": "Amazon EMR"}, Component.OTHER),
        # The fee of EKS Auto Mode is Kafka's where its machine is.
        (BROKERS, {"usage_type": "EKS-Auto:m7i.large"}, Component.BROKER_COMPUTE),
        (ANYONE, {"usage_type": "EKS-Auto:m7i.large"}, Component.OTHER),
        # Reserved capacity that nothing ran in, whatever its description says.
        (BROKERS, {**FOCUS, "usage_type": "UnusedBox:r7g.large"}, Component.OTHER),
        (BROKERS, {**FOCUS, "description": UNUSED}, Component.OTHER),
        # A second view of a node's money, of any seller and any kind.
        (ANYONE, {"operation": "EKSPod-EC2", "provider": None}, Component.SPLIT),
        (ANYONE, {"usage_type": "USE1-EKS-EC2-vCPU-Hours", "category": "Tax"}, Component.SPLIT),
        # Whatever MSK sells, by whatever meter.
        (
            ANYONE,
            {"service": "AmazonMSK", "usage_type": "USE1-New.meter"},
            Component.MANAGED_KAFKA,
        ),
        (BROKERS, {"reason": "no day"}, Component.UNREADABLE),
        (ANYONE, {"reason": "", "operation": "EKSPod-EC2"}, Component.UNREADABLE),
    ],
)
def test_a_line_bought_what_its_meter_and_owner_say(
    tags: Mapping[str, str], texts: Mapping[str, Any], component: Component
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
    line = described(
        BROKERS, usage_type=" USE1-CAN1-AWS-Out-Bytes ", currency=" usd", unit="n/a", service=""
    )
    found = (line.usage_type, line.currency, line.unit, line.service)
    assert found == ("AWS-Out-Bytes", "USD", None, None)


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
    tags: Mapping[str, str], texts: Mapping[str, Any], flow: Flow | None
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
def test_what_is_easily_saved_is_known_by_its_meter(
    texts: Mapping[str, Any], easy: Easy | None
) -> None:
    assert described(**texts).easy == described(BROKERS, **texts).easy == easy


@every_case(
    ("category", "expected"),
    [
        *((kind, True) for kind in ("EdpDiscount", "PrivateRateDiscount", " BundledDiscount ")),
        *((kind, False) for kind in ("Usage", "Credit", "DiscountedUsage", None)),
    ],
)
def test_a_discount_is_a_line_of_its_own(category: str | None, *, expected: bool) -> None:
    assert is_discount(described(category=category).category) is expected


# --- Whose it is.


@every_case(
    ("claim", "expected"),
    [
        ("data-0-harbour-broker-a-10", ("node pool", "harbour", "broker-a", 10)),
        ("data-0-other-broker-a-10", ("node pool", "harbour", "other-broker-a", 10)),
        ("data-0-harbour--10", ("cluster", "harbour", "whole cluster", 10)),
        ("data-0-harbour-broker-a-2147483648", ("node pool", "harbour", "broker-a", None)),
        ("prometheus-0", ("cluster", "harbour", "whole cluster", None)),
    ],
)
def test_a_volume_belongs_to_the_node_its_claim_names(
    claim: str, expected: tuple[str, str, str, int | None]
) -> None:
    assert owner(described({CLUSTER: "harbour", CLAIM: claim})) == expected
    # A claim of this name may be anybody's.
    nobodys = described({CLAIM: claim})
    assert owner(nobodys) == (Attribution.NOBODY, None, "unattributed", None)


@every_case(
    ("tags", "zone", "expected"),
    [
        (BROKERS, "us-east-1a", ("node pool", "harbour", "broker-a", None)),
        (BROKERS, "us-east-1-bos-1a ", ("node pool", "harbour", "broker-a", None)),
        # Of a zone's id, or without any, no pool is known.
        (BROKERS, "use1-az1", ("cluster", "harbour", "whole cluster", None)),
        (BROKERS, "NULL", ("cluster", "harbour", "whole cluster", None)),
        ({POOL: "broker"}, "use1-az1", ("node pool", None, "broker", None)),
        ({POOL: "broker"}, "us-east-1b", ("node pool", None, "broker-b", None)),
        ({CLUSTER: "harbour"}, "us-east-1a", ("cluster", "harbour", "whole cluster", None)),
        ({}, "us-east-1a", ("unattributed", None, "unattributed", None)),
        # An instance's own pool comes before a claim's.
        (
            {**BROKERS, CLAIM: "data-0-harbour-other-a-7"},
            "us-east-1b",
            ("node pool", "harbour", "broker-b", 7),
        ),
    ],
)
def test_an_instance_belongs_to_the_pool_of_its_tag_in_its_zone(
    tags: Mapping[str, str], zone: str, expected: tuple[str, str | None, str, int | None]
) -> None:
    assert owner(described(tags, zone=zone)) == expected


@every_case("nothing", ["", "  ", "NULL", None])
def test_a_tag_that_says_nothing_hides_no_other_spelling_of_it(nothing: str | None) -> None:
    line = described({CLUSTER: nothing, "stillwater:cluster": " harbour "})
    assert line.cluster == "harbour"


@every_case(
    "nothing",
    ["-", "n/a", "N/A", "#N/A", "(null)", "<null>", "nil", "none", "\\N", "NULL", " ", "", "nan"],
)
def test_what_people_write_for_nothing_is_no_tag_and_no_account(nothing: str) -> None:
    line = described({CLUSTER: nothing}, account=nothing, usage_type=nothing)
    assert (line.cluster, line.account, line.usage_type) == (None, None, None)
    assert line.attribution == Attribution.NOBODY


def test_tags_that_are_damaged_say_what_is_left_of_them() -> None:
    twice = raw(tag_names=(CLUSTER, CLUSTER), tag_values=("harbour", "other"))
    assert describe(twice, OURS).cluster == "harbour"
    short = raw(tag_names=(CLUSTER, POOL), tag_values=("harbour",))
    assert owner(describe(short, OURS))[:2] == (Attribution.CLUSTER, "harbour")


@every_case(
    ("name", "claim", "expected"),
    [
        ("harbour", "data-0-harbour-broker-a-10", ("node pool", "harbour", "broker-a", 10)),
        ("harbour", "data-0-postgres-broker-a-10", ("unattributed", None, "unattributed", None)),
        (None, "data-0-harbour-broker-a-10", ("unattributed", None, "unattributed", None)),
        # A name's own dots and pluses are no pattern.
        ("a.b+c", "data-0-a.b+c-broker-a-10", ("node pool", "a.b+c", "broker-a", 10)),
        ("a.b+c", "data-0-axbbc-broker-a-10", ("unattributed", None, "unattributed", None)),
    ],
)
def test_a_claim_is_kafkas_where_the_cluster_is_known(
    name: str | None, claim: str, expected: tuple[str, str | None, str, int | None]
) -> None:
    line = described({CLAIM: claim}, KafkaTags(name=name), resource_id="vol-1", zone=None)
    assert owner(line) == expected


@every_case(
    ("resource_id", "kept", "component"),
    [("i-1", "i-1", Component.BROKER_COMPUTE), ("i-2", None, Component.INSTANCES)],
)
def test_an_instance_of_the_ledger_is_kafkas_without_a_tag(
    resource_id: str, kept: str | None, component: Component
) -> None:
    kafka = KafkaTags(name="harbour", resources=frozenset({"i-1"}))
    line = described({}, kafka, resource_id=resource_id)
    assert (line.resource_id, line.component) == (kept, component)
    # Whatever tags it lost: one with a cluster's alone would be a system's node.
    lost = described({CLUSTER: "harbour"}, kafka, resource_id=resource_id)
    assert lost.component == (component if kept else Component.OTHER)
    assert line.cluster == (None if kept is None else "harbour")


def test_lines_of_nobody_are_one_whatever_their_resource_zone_and_tags() -> None:
    lines = {
        described(
            {"user_name": f"box {n}", "user_team": "web", NODE_GROUP: f"group {n}"},
            resource_id=f"i-{n}",
            zone=f"us-east-1{'abc'[n % 3]}",
        )
        for n in range(20)
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
def test_a_tag_or_cost_category_of_the_users_own_means_kafka(
    tags: Mapping[str, str], *, is_kafka: bool
) -> None:
    line = described(tags, STREAMING)
    assert (line.attribution != Attribution.NOBODY) is is_kafka
    # Nothing says pools: its instances are brokers'.
    assert line.component == (Component.BROKER_COMPUTE if is_kafka else Component.INSTANCES)


def test_a_value_that_means_kafka_is_called_as_the_cluster_is() -> None:
    tags = {"user_team": "streaming"}
    assert described(tags, STREAMING).cluster == "streaming"
    assert described(tags, KafkaTags("team", "streaming", name="harbour")).cluster == "harbour"
    # With a tag for pools, an instance without it is none of theirs.
    own = described(tags, KafkaTags("team", "streaming", pool="role"))
    assert own.component == Component.OTHER
