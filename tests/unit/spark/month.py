"""A month of one cluster, made up: what the report's tests and its page are shown."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Row

from spark import tables
from spark.report.document import Document
from spark.report.evidence import DayCost, Evidence, Report
from spark.report.story import report_document
from spark.rules.meters import Attribution, Component

TODAY = date(2026, 11, 21)
GIB = 1024**3
DAILY = {
    Component.BROKER_COMPUTE: "46.27",
    Component.GP3_STORAGE: "38.10",
    Component.GP3_IOPS: "6.20",
    Component.GP3_THROUGHPUT: "4.05",
    Component.INTER_AZ: "61.40",
    Component.LOAD_BALANCER: "9.85",
    Component.CONTROL_PLANE: "2.40",
    Component.OTHER: "21.00",
}
# What a row of any table says, where the table has the column.
USUAL = {"billing_period": "2026-11", "cluster": "harbour", "currency": "USD"}


def row(schema: pa.Schema, **values: Any) -> Row:
    """Return a row of a table; a column that is not named is null."""
    unknown = values.keys() - set(schema.names)
    assert not unknown, unknown
    return Row(**{name: values.get(name) for name in schema.names})


def rows_of(table: tables.Table, **fields: Any) -> Callable[..., Row]:
    """Return what makes a row of a table: of these fields, and of what is changed of them."""
    usual = {name: value for name, value in USUAL.items() if name in table.schema.names}
    return lambda **changes: row(table.schema, **{**usual, **fields, **changes})


_line = rows_of(
    tables.COST, component=Component.BROKER_COMPUTE, attribution=Attribution.NODE_POOL,
    owner="broker-a", zone="us-east-1a", charges=1,
)  # fmt: skip


def a_line(billed: object = "10.10", amortised: object = "8.08", **changes: Any) -> Row:
    """Return a row of COST, by default of a broker's instance."""
    money = {"billed_cost": Decimal(str(billed)), "amortised_cost": Decimal(str(amortised))}
    return _line(**money, **changes)


def nobodys(component: Component = Component.BROKER_COMPUTE, **changes: Any) -> Row:
    """Return a row of COST that nothing says is Kafka's."""
    no_owner = {"attribution": Attribution.NOBODY, "cluster": None, "owner": "unattributed"}
    return a_line(component=component, **no_owner, **changes)


def a_report(*lines: Row, **changes: Any) -> Report:
    fields: dict[str, Any] = {
        "label": "november", "currency": "USD", "today": date(2026, 11, 20), "simulated": False,
        "lines": lines, "rows": sum(line.charges for line in lines), "bad_rows": 0,
        "rows_without_cost": 0, "bad": (),
    }  # fmt: skip
    return Report(**{**fields, **changes})


def monthless(lines: int, without_cost: int, billed: str) -> Row:
    """Return what is noted of lines that name no month."""
    noted = {"lines": lines, "lines_without_cost": without_cost, "billed_cost": Decimal(billed)}
    return row(tables.DELIVERIES.schema, **noted)


def document_of(*lines: Row, **changes: Any) -> Document:
    """Return the report of a bill of which nothing else is known."""
    return report_document(Evidence(report=a_report(*lines, **changes)))


a_volume = rows_of(
    tables.STORAGE, owner="broker-a", node_id=10, zone="us-east-1a",
    resource_id="vol-0a1b2c3d4e5f60718", kind="gp3", size_gib=4000, iops=6000,
    throughput_mib_per_s=500, known_from="bill", used_bytes=900 * GIB,
    growth_bytes_per_day=6.0 * GIB, iops_p999=2100.0, throughput_p999_bytes_per_s=95.0 * 1024**2,
    billed_cost=Decimal("251.20"), finding="larger than needed", wanted_size_gib=1160,
    wanted_iops=3000, wanted_throughput_mib_per_s=187, monthly_saving=Decimal("254.72"),
    one_off_cost=Decimal("18.00"),
    reason="900.0 GiB used and +6.00 GiB a day want 1160 GiB for 14 days with 15% free",
)  # fmt: skip
_rotation = rows_of(
    tables.RESYNC, zone="us-east-1a", kind="asg_terminate", outcome="released",
    measured_from="metrics", resolution_seconds=15.0, append_bytes_per_s=30e6,
    moved_bytes=9_600_000_000, incremental_bytes=40_000_000, rate_bytes_per_s=200e6,
    rate_from="the fastest of 4 before", model_bytes=9_000_000_000, held_bytes=900 * GIB,
    empty_seconds=5700.0, empty_bytes=1_130_000_000_000, gross_cost=Decimal("0.18"),
    incremental_cost=Decimal("0.0007"), empty_cost=Decimal("18.00"),
)  # fmt: skip
a_design = rows_of(
    tables.ECONOMICS, design="EBS", instance_type="r7g.2xlarge", brokers=3,
    instances_cost=Decimal("938.20"), storage_cost=Decimal("1005.00"), rotation_cost=Decimal(0),
    rotation_seconds=300.0, limited_by="the volume's throughput", fill=0.225,
    rotations_per_month=7.6, rotations_ratio=1.0, monthly_cost=Decimal("1943.20"), risk_hours=0.63,
    break_even_fill=0.21, break_even_rotations=11.2, chosen=False, region="us-east-1",
    prices_as_of=date(2024, 9, 30),
)  # fmt: skip
an_anomaly = rows_of(
    tables.ANOMALIES, day=date(2026, 11, 12), component="inter-AZ transfer",
    cost=Decimal("131.00"), usual=Decimal("61.40"), excess=Decimal("69.60"), score=22.0,
    owner="broker-b", zone="us-east-1b", owner_excess=Decimal("64.00"), rotations=1,
    reason="charges of broker-b in us-east-1b account for 92 % of it; 1 rotation on that day or "
    "the one before",
)  # fmt: skip
_flow = rows_of(tables.TRANSFER, day=date(2026, 11, 1), certainty="shared")
_units = rows_of(tables.UNIT, produced_gib=840.0, retained_gib=2700.0, partitions=1800.0, brokers=3)


def a_rotation(number: int = 1, **changes: Any) -> Row:
    own: dict[str, Any] = {
        "incident": f"i-0{number}",
        "node_id": 10 * (1 + number % 3),
        "started_at": datetime(2026, 11, number + 1, 9, 14, tzinfo=UTC),
        "down_seconds": 240.0 + 13 * number,
        "catch_up_seconds": 48.0 + number,
        "total_seconds": 288.0 + 14 * number,
        "model_seconds": 45.0 + number,
    }
    return _rotation(**{**own, **changes})


def a_flow(flow: str, billed: str, saving: str = "0", **changes: Any) -> Row:
    crossed = int(float(billed) / 0.01 * GIB)
    money = {"billed_cost": Decimal(billed), "rack_aware_saving": Decimal(saving)}
    return _flow(flow=flow, billed_bytes=crossed, **money, **changes)


def a_node_share(split: str, unused: str, **changes: Any) -> Row:
    """Return what a workload had of its nodes, as the report adds it up."""
    fields: dict[str, Any] = {
        "cluster": "harbour", "kind": "daemon set", "namespace": "kube-system",
        "workload_type": "DaemonSet", "workload": "aws-node", "currency": "USD", "pods": 3,
        "nodes": 3, "split_cost": Decimal(split), "unused_cost": Decimal(unused),
        "net_split_cost": Decimal(split), "net_unused_cost": Decimal(unused),
    }  # fmt: skip
    return Row(**{**fields, **changes})


def a_day_of_units(day: date, cost: float, **changes: Any) -> Row:
    own: dict[str, Any] = {
        "billing_period": f"{day:%Y-%m}",
        "day": day,
        "complete": day < TODAY - timedelta(days=1),
        "cost": Decimal(repr(round(cost, 4))),
        "cost_per_produced_gib": cost / 840,
        "cost_per_retained_gib_month": cost * 30 / 2700,
        "cost_per_partition_month": cost * 30 / 1800,
        "cost_per_broker_month": cost * 10,
    }
    return _units(**{**own, **changes})


NVME: dict[str, Any] = {
    "design": "NVMe", "instance_type": "i8g.2xlarge", "instances_cost": Decimal("1503.20"),
    "storage_cost": Decimal(0), "limited_by": "the instance's network baseline", "fill": 0.52,
}  # fmt: skip
DESIGNS = (
    a_design(chosen=True),
    a_design(**NVME, rotation_cost=Decimal(18), rotation_seconds=5940.0,
             monthly_cost=Decimal("1640.00"), risk_hours=12.5),
    a_design(**{**NVME, "design": "NVMe in place"}, rotation_cost=Decimal(6),
             rotation_seconds=2180.0, monthly_cost=Decimal("1548.80"), risk_hours=4.6),
)  # fmt: skip
FLOWS = (
    *(a_flow("replicate", "30.51", day=date(2026, 11, n)) for n in range(1, 21)),
    a_flow("consume", "402.10", "402.10", day=date(2026, 11, 20), certainty="at most"),
    a_flow("produce", "215.70"),
    a_flow("load balancer", "63.00", certainty="billed"),
)
NODES = (
    a_node_share("6.30", "1.20"),
    a_node_share("12.60", "2.40", workload="agent", namespace="observability"),
    a_node_share("4.10", "0.80", kind="other pod", workload="report-5d8f",
                 workload_type="ReplicaSet", namespace="default"),
    a_node_share("588.00", "112.60", kind="Kafka", workload=None, workload_type=None,
                 namespace="kafka"),
)  # fmt: skip
VOLUMES = (
    *(a_volume(resource_id=f"vol-0{letter}1b2c3d4e5f6071{letter}", owner=f"broker-{letter}",
               node_id=10 * (index + 1), zone=f"us-east-1{letter}",
               used_bytes=(900 + 40 * index) * GIB)
      for index, letter in enumerate("abc")),
    a_volume(resource_id="vol-0fff2c3d4e5f60aaa", owner="broker-b", node_id=29, size_gib=1000,
             used_bytes=None, finding="attached to nothing", monthly_saving=Decimal("80.00"),
             one_off_cost=Decimal(0),
             reason="billed until 2026-11-20, and no node mounts a claim of broker-b 29"),
)  # fmt: skip
# Of a report that is about something else.
NOTHING = {"storage": (), "transfer": (), "anomalies": (), "economics": ()}


def evidence(**changes: Any) -> Evidence:
    """Return three weeks of November after a whole October."""
    first, last = date(2026, 10, 1), TODAY - timedelta(days=1)
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    costs = [
        DayCost(day, c.value, _cost(day, c), is_kafkas=c is not Component.OTHER)
        for day in days
        for c in DAILY
    ]
    fields: dict[str, Any] = {
        "report": _report(costs),
        "all_days": costs,
        "month": "2026-11",
        "transfer": FLOWS,
        "nodes": NODES,
        "storage": VOLUMES,
        "economics": DESIGNS,
        "resync": tuple(a_rotation(number) for number in range(1, 6)),
        "unit": tuple(a_day_of_units(day, 150 + (n * 7 % 11)) for n, day in enumerate(days)),
        "anomalies": (an_anomaly(),),
    }
    return Evidence(**{**fields, **changes})


def _cost(day: date, component: Component) -> Decimal:
    base = Decimal(DAILY[component])
    if component is Component.INTER_AZ and day == date(2026, 11, 12):
        return Decimal("131.00")
    swing = Decimal(100 + (day.toordinal() * 7 % 5)) / 100
    grown = Decimal("1.08") if day >= date(2026, 11, 1) else Decimal(1)
    return (base * swing * grown).quantize(Decimal("0.0001"))


def _report(costs: list[DayCost]) -> Report:
    lines = []
    for component in DAILY:
        own = (e.billed for e in costs if e.day.month == 11 and e.component == component.value)
        billed = sum(own, Decimal(0))
        part = (billed / 3).quantize(Decimal("0.0001"))
        whole = {"billed": billed, "amortised": billed, "zone": None, "charges": 480}
        if component is Component.OTHER:
            lines.append(nobodys(component, **whole))
        elif component is Component.CONTROL_PLANE:
            of_all = {"attribution": Attribution.CLUSTER, "owner": "whole cluster"}
            lines.append(a_line(component=component, **of_all, **whole))
        else:
            lines += [
                a_line(part, part * Decimal("0.8"), component=component, charges=1440,
                       owner=f"broker-{letter}", zone=f"us-east-1{letter}", node_id=10 * number)
                for number, letter in enumerate("abc", start=1)
            ]  # fmt: skip
    return a_report(*lines, label="harbour, 2026-11", today=TODAY)
