"""The twin's bill: metered as AWS meters, delivered as AWS delivers, and plainly simulated."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from core.ground.errors import InvalidInput
from local.aws import billing
from local.place import Place

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SECONDS_IN_NOVEMBER = 30 * 86400


class FakeEc2:
    """Answers in pages of one, as a long list would come."""

    def __init__(self, instances: list[dict[str, Any]], volumes: list[dict[str, Any]]) -> None:
        self._answers = {
            "Reservations": [{"Instances": [instance]} for instance in instances],
            "Volumes": volumes,
        }

    def describe_instances(self, **query: Any) -> Mapping[str, Any]:
        return self._page("Reservations", **query)

    def describe_volumes(self, **query: Any) -> Mapping[str, Any]:
        return self._page("Volumes", **query)

    def _page(self, key: str, NextToken: str = "0") -> dict[str, Any]:  # noqa: N803 - boto3's word
        at = int(NextToken)
        more = {"NextToken": str(at + 1)} if at + 1 < len(self._answers[key]) else {}
        return {key: self._answers[key][at : at + 1], **more}


class FakeEks:
    def list_clusters(self) -> Mapping[str, Any]:
        return {"clusters": ["harbour"]}

    def describe_cluster(self, *, name: str) -> Mapping[str, Any]:
        arn = f"arn:aws:eks:us-east-1:123456789012:cluster/{name}"
        tags = {"stillwater:cluster": name}
        return {"cluster": {"arn": arn, "createdAt": NOON - timedelta(hours=5), "tags": tags}}


def an_instance(identity: str = "i-1", **changes: Any) -> dict[str, Any]:
    return {
        "InstanceId": identity,
        "InstanceType": "r7g.large",
        "LaunchTime": NOON,
        "StateTransitionReason": "",
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "Tags": [
            {"Key": "stillwater:cluster", "Value": "harbour"},
            {"Key": "aws:autoscaling:groupName", "Value": "local-harbour-broker-a"},
        ],
        **changes,
    }


def a_volume(identity: str = "vol-1", **changes: Any) -> dict[str, Any]:
    return {
        "VolumeId": identity,
        "VolumeType": "gp3",
        "Size": 100,
        "CreateTime": NOON,
        "AvailabilityZone": "us-east-1a",
        **changes,
    }


def bill(
    out: Path,
    *,
    instances: list[dict[str, Any]] | None = None,
    volumes: list[dict[str, Any]] | None = None,
    start: datetime = NOON,
    end: datetime = NOON + timedelta(minutes=30),
    **more: Any,
) -> tuple[billing.Bill, list[dict[str, Any]]]:
    written = billing.write_bill(
        Place(79, out),
        ec2=FakeEc2(instances or [], volumes or []),
        out=out,
        started_at=start.timestamp(),
        ended_at=end.timestamp(),
        **more,
    )
    files = sorted(out.glob("data/*/*.parquet"))
    return written, [row for file in files for row in pq.read_table(file).to_pylist()]


def costs(rows: list[dict[str, Any]]) -> dict[str, Decimal]:
    return {
        row["line_item_usage_type"]: Decimal(repr(row["line_item_unblended_cost"])) for row in rows
    }


def test_half_an_hour_of_an_instance_costs_half_its_hourly_price(tmp_path: Path) -> None:
    written, rows = bill(tmp_path, instances=[an_instance()])
    assert costs(rows) == {"BoxUsage:r7g.large": Decimal("0.1071") / 2}
    assert written.total == Decimal("0.05355")
    tags = dict(rows[0]["resource_tags"])
    assert tags["aws_autoscaling_group_name"] == "local-harbour-broker-a"


@pytest.mark.parametrize(
    ("stopped", "hours"), [("12:00:05", 60 / 3600), ("12:15:00", 0.25)], ids=["a minute", "until"]
)
def test_a_terminated_instance_is_billed_until_it_stopped_and_for_a_minute_at_least(
    tmp_path: Path, stopped: str, hours: float
) -> None:
    gone = an_instance(StateTransitionReason=f"User initiated (2026-11-20 {stopped} UTC)")
    _, (row,) = bill(tmp_path, instances=[gone])
    assert row["line_item_usage_amount"] == pytest.approx(hours, abs=1e-6)


def test_what_ended_before_or_began_after_the_window_is_not_billed(tmp_path: Path) -> None:
    early = an_instance(
        "i-early",
        LaunchTime=NOON - timedelta(hours=2),
        StateTransitionReason="User initiated (2026-11-20 11:00:00 UTC)",
    )
    late = an_instance("i-late", LaunchTime=NOON + timedelta(hours=2))
    written, rows = bill(tmp_path, instances=[early, late])
    assert (written.total, rows) == (0, [])


def test_a_life_is_cut_at_clock_hours_and_adds_up(tmp_path: Path) -> None:
    start, end = NOON + timedelta(minutes=45), NOON + timedelta(hours=2, minutes=15)
    instance = an_instance(LaunchTime=start)
    _, rows = bill(tmp_path, instances=[instance], start=start, end=end)
    assert [row["line_item_usage_amount"] for row in rows] == [0.25, 1.0, 0.25]
    assert rows[1]["line_item_usage_start_date"] == datetime(2026, 11, 20, 13)  # noqa: DTZ001


def test_a_volume_costs_its_share_of_the_month_and_what_exceeds_the_baseline(
    tmp_path: Path,
) -> None:
    fast = a_volume(Iops=4000, Throughput=381)
    _, rows = bill(tmp_path, volumes=[fast])
    share = Decimal(1800) / SECONDS_IN_NOVEMBER
    exact = {
        "EBS:VolumeUsage.gp3": 100 * share * Decimal("0.08"),
        "EBS:VolumeP-IOPS.gp3": 1000 * share * Decimal("0.005"),
        "EBS:VolumeP-Throughput.gp3": Decimal("0.25") * share * Decimal("40.96"),
    }
    found = costs(rows)
    assert found.keys() == exact.keys()
    assert all(abs(found[key] - exact[key]) < Decimal("1e-8") for key in exact)


def test_a_volume_at_its_baseline_has_its_performance_lines_at_nothing(tmp_path: Path) -> None:
    _, rows = bill(tmp_path, volumes=[a_volume()])
    assert costs(rows)["EBS:VolumeP-IOPS.gp3"] == 0
    assert costs(rows)["EBS:VolumeP-Throughput.gp3"] == 0


def test_the_control_plane_is_billed_by_the_hour(tmp_path: Path) -> None:
    _, (row,) = bill(tmp_path, eks=FakeEks())
    assert row["line_item_usage_type"] == "USE1-AmazonEKS-Hours:perCluster"
    assert row["line_item_unblended_cost"] == 0.05


def test_bytes_between_zones_are_billed_on_both_sides(tmp_path: Path) -> None:
    written, rows = bill(tmp_path, instances=[an_instance()], bytes_between_zones=3 * 1024**3)
    sides = [row for row in rows if row["line_item_operation"].startswith("InterZone")]
    assert [row["line_item_unblended_cost"] for row in sides] == [0.03, 0.03]
    assert dict(sides[0]["resource_tags"])["user_stillwater_cluster"] == "harbour"
    assert written.total == Decimal("0.05355") + Decimal("0.06")


def test_every_line_and_the_manifest_say_that_it_is_simulated(tmp_path: Path) -> None:
    _, rows = bill(tmp_path, instances=[an_instance()], volumes=[a_volume()], eks=FakeEks())
    (manifest,) = tmp_path.glob("metadata/*/*-Manifest.json")
    assert json.loads(manifest.read_text())["simulated"] is True
    for row in rows:
        assert dict(row["resource_tags"])["user_stillwater_simulated"] == "true"
        assert row["line_item_line_item_description"].startswith("Simulated: ")


def test_a_window_across_midnight_of_a_month_is_two_billing_periods(tmp_path: Path) -> None:
    start = datetime(2026, 11, 30, 23, 30, tzinfo=UTC)
    instance = an_instance(LaunchTime=start)
    _, rows = bill(tmp_path, instances=[instance], start=start, end=start + timedelta(hours=1))
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
        "BILLING_PERIOD=2026-11",
        "BILLING_PERIOD=2026-12",
    ]
    assert [row["bill_billing_period_start_date"].month for row in rows] == [11, 12]


def test_a_second_bill_replaces_the_first(tmp_path: Path) -> None:
    october = datetime(2026, 10, 20, 12, tzinfo=UTC)
    instance = an_instance(LaunchTime=october)
    bill(tmp_path, instances=[instance], start=october, end=october + timedelta(hours=1))
    _, rows = bill(tmp_path, instances=[an_instance()])
    assert len(rows) == 1
    assert len(list(tmp_path.glob("metadata/*/*-Manifest.json"))) == 1


def test_an_instance_type_without_a_price_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no price for instance_hour of x9\.huge"):
        bill(tmp_path, instances=[an_instance(InstanceType="x9.huge")])


def test_ebs_is_prorated_over_the_calendar_month_not_over_730_hours() -> None:
    february, july = datetime(2026, 2, 3, tzinfo=UTC), datetime(2026, 7, 3, tzinfo=UTC)
    assert billing.volume_months(28 * 86400, february) == 1
    assert billing.volume_months(31 * 86400, july) == 1


def test_hours_are_rounded_as_ec2_bills_them() -> None:
    # 0.296111 h is a quantity of the FOCUS sample: 1,066 seconds.
    assert billing.billed_hours(1066) == Decimal("0.296111")
