"""core.cluster.own: what Stillwater itself uses, by hand and beside what infra makes."""

from decimal import Decimal
from typing import Any

from core.cluster import ClusterSpec, estimate, own
from core.cluster.operated import operated_cluster
from core.cost import pricing
from core.ground.constants import schedule_minutes
from infra.alerts.alarms import alarms, functions
from infra.functions.catalogue import EVERY
from infra.versions import LAMBDA_ARCHITECTURE
from tests.every_case import every_case
from tests.unit.core.cluster.test_estimate import a_spec

BOOK = pricing.book("us-east-1")
PROMETHEUS = {"prometheus": {"address": "http://prometheus.monitoring.svc:9090"}}
SLACK = {"channel": "C0HARBOUR1", "secret_name": "slack"}


def dollars(spec: ClusterSpec) -> dict[str, str]:
    """Return the dollars of each line."""
    lines = estimate.monthly(spec, BOOK).lines
    return {line.what: str(line.usd) for line in lines if line.component == "Stillwater"}


def test_a_month_of_three_brokers_is_what_a_hand_computes() -> None:
    # Six nodes, so 6 x 2 x 900 / 15 = 720 ticks beside 43,800 + 2 x 8,760 = 61,320 scheduled calls.
    assert dollars(a_spec()) == {
        # 1.7275 GiB a processor x (43,800 x 0.256 + 8,760 x 0.206 + 8,760 x 0.286) = 26,816.
        "functions on a schedule": "0.36",
        "ticks of incidents": "0.01",  # 1.7275 x 720 x 0.736 = 915
        "calls of functions": "0.01",
        "waiting on queues, and ticks": "0.58",  # 11 x 3 x 43,800 + 3 x 720 = 1,447,560
        # 17 x 43,800 + (1.5 + 3.5 + 6 x 4) x 8,760 + 8 x 720 = 1,004,400; and 285,960.
        "ledger, read": "0.13",
        "ledger, written": "0.18",
        "metrics that alarms watch": "4.50",
        "overview in CloudWatch": "3.00",
        "metrics of our own": "0.60",
        "load of volumes, by CloudWatch": "1.40",  # 6 x 8 x 8,760 / 3 = 140,160
        "logs of functions": "0.03",
        "tokens of webhook": "0.40",
        # (6 x 43,800 + 6 x 8,760) x 8 KiB + 140,160 x 4 KiB = 2.94 GiB
        "answers of AWS through NAT": "0.13",
    }


def test_a_small_clusters_own_cost_stays_below_fifteen_dollars() -> None:
    # Beside the lines above, the key of the alerts' topic.
    assert sum(map(Decimal, dollars(a_spec()).values())) + 1 < 15


def test_what_is_not_there_is_not_counted() -> None:
    quiet = dollars(a_spec(alerts={"enabled": False}, network={"interface_endpoints": True}))
    assert not {"metrics that alarms watch", "overview in CloudWatch"} & quiet.keys()
    assert "answers of AWS through NAT" not in quiet
    counted = dollars(a_spec(metrics=PROMETHEUS))
    assert "load of volumes, by CloudWatch" not in counted
    assert dollars(a_spec(slack=SLACK))["tokens of webhook and Slack"] == "0.80"


def test_a_region_without_a_figure_has_none() -> None:
    elsewhere = pricing.book("eu-west-1")
    items = {use.item for use in own.own_use(a_spec())}
    known = {item for item in items if elsewhere.find(item) is not None}
    assert known == {"nat_gib", "log_gib_ingested", "dashboard_month"}
    assert all(BOOK.find(item) is not None for item in items)


KARPENTER = {"node_provisioner": "karpenter"}
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "Slack": {"slack": SLACK},
    "Prometheus": {"metrics": PROMETHEUS},
    "Karpenter": KARPENTER,
    "all": {"slack": SLACK, "metrics": PROMETHEUS, **KARPENTER},
}


@every_case(("name", "changes"), SHAPES.items(), ids=list(SHAPES))
def test_what_infra_makes_is_what_is_counted(name: str, changes: dict[str, Any]) -> None:
    spec = a_spec(**changes)
    cluster = operated_cluster(spec)
    assert own.alarm_metrics(spec) == sum(len(alarm.metrics) for alarm in alarms(cluster))
    made = [each for each in EVERY if each.name in functions(cluster)]
    used = {use.item: use.quantity for use in own.own_use(spec)}
    receivers = own.HANDLER_RECEIVERS + own.LAMBDA_RECEIVERS * sum(
        bool(each.reads) for each in made
    )
    assert used["sqs_request"] == receivers * 3 * own.MINUTES_PER_MONTH + 720 * 3
    minutes = [schedule_minutes(each.name) for each in made if each.schedule]
    assert used["lambda_request"] == sum(own.MINUTES_PER_MONTH // each for each in minutes) + 720


def test_the_price_is_of_the_architecture_that_runs() -> None:
    assert f"lambda_{LAMBDA_ARCHITECTURE.removesuffix('64')}_gib_second" in pricing.ITEMS
