"""Bills in five shapes, and what each must come to: sums of plain Python over the lines themselves.

Nothing here knows how the report adds up: amounts are decimals, written into the bill as doubles of
few digits, and added up by the account, the kind or the owner that the generator chose.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

Line = Mapping[str, Any]
START = datetime(2026, 11, 1)  # noqa: DTZ001 - CUR writes no zone
OURS = {"user_stillwater_cluster": "harbour", "user_stillwater_pool": "broker"}
METERS = (
    ("AmazonEC2", "BoxUsage:m7i.large", "RunInstances", "Hrs"),
    ("AmazonEC2", "EBS:VolumeUsage.gp3", "CreateVolume-Gp3", "GB-Mo"),
    ("AmazonEC2", "EBS:VolumeUsage.gp2", "CreateVolume-Gp2", "GB-Mo"),
    ("AmazonEC2", "EBS:SnapshotUsage", "CreateSnapshot", "GB-Mo"),
    ("AmazonEC2", "DataTransfer-Regional-Bytes", "InterZone-In", "GB"),
    ("AmazonEC2", "DataTransfer-Out-Bytes", "RunInstances", "GB"),
    ("AmazonEC2", "NatGateway-Bytes", "NatGateway", "GB"),
    ("AmazonVPC", "PublicIPv4:InUseAddress", "AllocateAddressVPC", "Hrs"),
    ("AmazonS3", "TimedStorage-ByteHrs", "StandardStorage", "GB-Mo"),
    ("AmazonRDS", "InstanceUsage:db.r6g.large", "CreateDBInstance", "Hrs"),
    ("AWSLambda", "Lambda-GB-Second", "Invoke", "Second"),
)


def line(day: int, cost: str, meter: tuple[str, str, str, str] = METERS[0], **more: Any) -> Line:
    """Return one line of a CUR 2.0, the day counted from nought."""
    product, usage_type, operation, unit = meter
    begins = START + timedelta(days=day, hours=more.pop("hour", 0))
    return {
        "line_item_unblended_cost": float(cost),
        "line_item_product_code": product,
        "line_item_usage_type": usage_type,
        "line_item_operation": operation,
        "pricing_unit": unit,
        "line_item_usage_amount": 1.0,
        "line_item_usage_start_date": begins,
        "line_item_resource_id": "",
        "line_item_availability_zone": "",
        "resource_tags": {},
        **more,
    }


def seeded_random(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same bill every time


def a_cost(chance: random.Random, most: float = 9.0) -> str:
    """Return an amount as AWS writes it: ten places."""
    return f"{chance.uniform(0, most):.10f}"


def payer_of_40_accounts() -> Iterator[Line]:
    chance = seeded_random(40)
    for number in range(40):
        account = f"{210000000000 + number}"
        for day in range(30):
            for meter in METERS:
                yield line(
                    day,
                    a_cost(chance),
                    meter,
                    line_item_usage_account_id=account,
                    line_item_resource_id=f"arn:{account}:{meter[1]}",
                    resource_tags={"user_team": f"team-{number % 7}"},
                )
        yield line(
            0,
            a_cost(chance),
            ("AmazonEC2", "", "", ""),
            line_item_usage_account_id=account,
            line_item_line_item_type="Tax",
        )
    for day in range(30):
        for number in range(3):
            yield _broker(day, number, a_cost(chance), account="210000000007")


def _broker(day: int, number: int, cost: str, prefix: str = "", **more: Any) -> Line:
    zone = f"{more.pop('region', 'us-east-1')}{'abc'[number]}"
    account = more.pop("account", "123456789012")
    return line(
        day,
        cost,
        ("AmazonEC2", f"{prefix}BoxUsage:r7g.large", "RunInstances", "Hrs"),
        line_item_usage_account_id=account,
        line_item_resource_id=f"i-0{number}",
        line_item_availability_zone=zone,
        resource_tags=OURS,
        **more,
    )


def tagless() -> Iterator[Line]:
    chance = seeded_random(7)
    for day in range(30):
        for meter in METERS:
            yield line(day, a_cost(chance), meter, line_item_resource_id=f"r-{meter[1]}")
        yield line(
            day,
            a_cost(chance),
            line_item_resource_id="i-0kafka",
            resource_tags={"user_team": "streaming", "user_name": f"box {day}"},
        )
    yield line(0, "336.00", ("AmazonEKS", "AmazonEKS-Hours:extendedSupport", "", "Hours"))


def eu_west_1() -> Iterator[Line]:
    """Yield a cluster's lines elsewhere, in another currency than price files."""
    for each in _of_eu_west_1():
        yield {**each, "line_item_currency_code": "EUR"}


def _of_eu_west_1() -> Iterator[Line]:
    chance = seeded_random(1)
    for day in range(30):
        for number in range(3):
            yield _broker(day, number, a_cost(chance), "EU-", region="eu-west-1")
            yield line(
                day,
                a_cost(chance),
                ("AmazonEC2", "EU-EBS:VolumeUsage.gp3", "CreateVolume-Gp3", "GB-Mo"),
                line_item_resource_id=f"vol-0{number}",
                line_item_availability_zone=f"eu-west-1{'abc'[number]}",
                line_item_usage_amount=100 / 30,
                resource_tags={
                    "user_stillwater_cluster": "harbour",
                    "user_kubernetes_io_created_for_pvc_name": (
                        f"data-0-harbour-broker-{'abc'[number]}-{number}0"
                    ),
                },
            )
        yield line(
            day,
            a_cost(chance),
            ("AmazonEC2", "EU-DataTransfer-Regional-Bytes", "InterZone-In", "GB"),
            line_item_resource_id="i-00",
            resource_tags=OURS,
        )
        yield line(day, a_cost(chance), ("AmazonS3", "EU-Requests-Tier1", "PutObject", "Requests"))


def discounts_and_refunds() -> Iterator[Line]:
    """Yield commitments, credits, refunds and a private discount written as lines."""
    chance = seeded_random(3)
    for day in range(30):
        covered = a_cost(chance, 2)
        yield _broker(
            day, 0, covered, line_item_line_item_type="SavingsPlanCoveredUsage",
            savings_plan_savings_plan_effective_cost=round(float(covered) * 0.7, 8),
        )  # fmt: skip
        yield _broker(day, 0, f"-{covered}", line_item_line_item_type="SavingsPlanNegation")
        yield _broker(
            day, 1, "0", line_item_line_item_type="DiscountedUsage",
            reservation_effective_cost=float(a_cost(chance, 1)),
        )  # fmt: skip
        yield _broker(day, 2, a_cost(chance))
        yield _broker(day, 2, f"-{a_cost(chance, 0.3)}", line_item_line_item_type="EdpDiscount")
        # Another team's discount on its own instances.
        yield line(day, f"-{a_cost(chance, 0.5)}", line_item_line_item_type="EdpDiscount")
        yield line(day, a_cost(chance), METERS[8])
    whole = ("AmazonEC2", "", "", "")
    plan = ("ComputeSavingsPlans", "ComputeSP:1yrNoUpfront", "", "")
    yield line(
        0, "72.5", plan, line_item_line_item_type="SavingsPlanRecurringFee",
        savings_plan_total_commitment_to_date=72.5, savings_plan_used_commitment=61.25,
    )  # fmt: skip
    yield line(
        0, "18.25", line_item_line_item_type="RIFee",
        reservation_unused_amortized_upfront_fee_for_billing_period=1.125,
        reservation_unused_recurring_fee=2.0,
    )  # fmt: skip
    refund = "Refund for {} fee for Savings Plan ID : 1"
    for kind, amount in (("one-time", "-100.5"), ("recurring", "-7.25")):
        yield line(
            3, amount, plan, line_item_line_item_type="Refund",
            line_item_line_item_description=refund.format(kind),
        )  # fmt: skip
    yield line(5, "-12.75", whole, line_item_line_item_type="Credit")
    yield line(5, "-0.33", line_item_line_item_type="Refund")
    yield line(0, "21.07", whole, line_item_line_item_type="Tax")


def a_resource_a_line(lines: int = 20_000) -> Iterator[Line]:
    """Yield lines that have nothing in common but what was bought."""
    chance = seeded_random(11)
    for number in range(lines):
        yield line(
            number % 30,
            a_cost(chance, 0.01),
            METERS[number % len(METERS)],
            line_item_resource_id=f"arn:aws:any:{number}",
            line_item_usage_account_id=f"{300000000000 + number % 5}",
            resource_tags={"user_name": f"thing-{number}"},
        )
    for day in range(30):
        yield _broker(day, 0, a_cost(chance))


SHAPES: Mapping[str, Callable[[], Iterator[Line]]] = {
    shape.__name__: shape
    for shape in (
        payer_of_40_accounts,
        tagless,
        eu_west_1,
        discounts_and_refunds,
        a_resource_a_line,
    )
}


def amount(each: Line, name: str) -> Decimal:
    """Return an amount as it is written in the bill."""
    return Decimal(repr(float(each.get(name, 0.0))))


def billed_cost(each: Line) -> Decimal:
    return amount(each, "line_item_unblended_cost")


def amortised_cost(each: Line) -> Decimal:
    """Return AWS's published view of one line (CID, summary_view), written once more by hand."""
    kind = each.get("line_item_line_item_type", "Usage")
    text = each.get("line_item_line_item_description", "")
    if kind == "SavingsPlanCoveredUsage":
        return amount(each, "savings_plan_savings_plan_effective_cost")
    if kind == "SavingsPlanRecurringFee":
        total = amount(each, "savings_plan_total_commitment_to_date")
        return total - amount(each, "savings_plan_used_commitment")
    if kind == "DiscountedUsage":
        return amount(each, "reservation_effective_cost")
    if kind == "RIFee":
        upfront = amount(each, "reservation_unused_amortized_upfront_fee_for_billing_period")
        return upfront + amount(each, "reservation_unused_recurring_fee")
    if kind == "SavingsPlanNegation" or "one-time fee for Savings Plan" in text:
        return Decimal(0)
    return billed_cost(each)


def is_kafkas(each: Line) -> bool:
    return "user_stillwater_cluster" in each["resource_tags"]
