"""core.cost: offer files of the documented format into the price book, in bounded memory."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cost import price_list, pricing
from core.cost.price_list import Gathered, Product
from core.ground.errors import InvalidInput
from tests.every_case import every_case

# service, usage type, operation, USD.
IRELAND = (
    ("AmazonEC2", "EU-BoxUsage:m7g.large", "RunInstances", "0.0911000000"),
    ("AmazonEC2", "EU-BoxUsage:m7g.large", "RunInstances:0002", "0.1831000000"),
    ("AmazonEC2", "EU-BoxUsage:x99.huge", "RunInstances", "9.0000000000"),
    ("AmazonEC2", "EU-UnusedBox:m7g.large", "RunInstances", "0.0911000000"),
    ("AmazonEC2", "EU-EBS:VolumeUsage.gp3", "", "0.0880000000"),
    ("AmazonEC2", "EU-EBS:VolumeP-IOPS.gp3", "", "0.0055000000"),
    ("AmazonEC2", "EU-EBS:VolumeP-Throughput.gp3", "", "45.0560000000"),
    ("AmazonEC2", "EU-NatGateway-Hours", "NatGateway", "0.0480000000"),
    ("AmazonEC2", "EU-DataTransfer-Regional-Bytes", "", "0.0100000000"),
    ("AWSELB", "EU-LoadBalancerUsage", "LoadBalancing:Application", "0.0252000000"),
)


def as_json(
    rows: tuple[tuple[str, str, str, str], ...] = IRELAND, currency: str = "USD", **changed: Any
) -> str:
    products, on_demand, reserved = {}, {}, {}
    for number, (service, usage_type, operation, usd) in enumerate(rows):
        sku = f"SKU{number:04}"
        products[sku] = {
            "sku": sku,
            "productFamily": "whatever",
            "attributes": {
                "servicecode": service,
                "regionCode": changed.get("region", "eu-west-1"),
                "usagetype": usage_type,
                "operation": operation,
                "note": 'a "quoted" {brace}, é',
            },
        }
        on_demand[sku] = {f"{sku}.T": _term(sku, [("0", usd), ("1024", "0.0001")], currency)}
        reserved[sku] = {
            f"{sku}.{years}.{option}": {
                **_term(sku, [("0", f"0.0{years}")], currency),
                "termAttributes": {
                    "LeaseContractLength": f"{years}yr",
                    "OfferingClass": "standard",
                    "PurchaseOption": option,
                },
            }
            for years in (1, 3)
            for option in ("No Upfront", "All Upfront")
        }
    return json.dumps(
        {
            "formatVersion": "v1.0",
            "disclaimer": "This pricing list is for informational purposes only.",
            "offerCode": rows[0][0] if rows else "AmazonEC2",
            "version": "20261101000000",
            "publicationDate": "2026-11-01T00:00:00Z",
            "products": products,
            "terms": {"OnDemand": on_demand, "Reserved": reserved},
        },
        indent=changed.get("indent"),
        ensure_ascii=False,
    )


def _term(sku: str, tiers: list[tuple[str, str]], currency: str) -> dict[str, Any]:
    return {
        "sku": sku,
        "priceDimensions": {
            f"{sku}.T.{at}": {"beginRange": at, "unit": "Hrs", "pricePerUnit": {currency: usd}}
            for at, usd in tiers
        },
    }


EXPECTED = {
    "instance_hour:m7g.large": Decimal("0.0911"),
    "gp3_gib_month": Decimal("0.088"),
    "gp3_iops_month": Decimal("0.0055"),
    "gp3_gibps_month": Decimal("45.056"),
    "nat_hour": Decimal("0.048"),
    "inter_zone_gib": Decimal("0.01"),
}
# Of the standard reservations without an upfront payment.
COMMITTED = {
    "instance_hour_1y:m7g.large": Decimal("0.01"),
    "instance_hour_3y:m7g.large": Decimal("0.03"),
}


def gathered(text: str | io.TextIOBase, region: str = "eu-west-1") -> Gathered:
    found = Gathered(region, lambda name: name == "m7g.large")
    file = io.StringIO(text) if isinstance(text, str) else text
    for quoted in price_list.read_quotes(file, "index", found.wants):  # type: ignore[arg-type]
        found.add(quoted)
    return found


@pytest.mark.parametrize("text", [as_json(), as_json(indent=2)], ids=["json", "indented"])
def test_an_offer_file_becomes_the_rows_this_project_reckons_with(text: str) -> None:
    found = gathered(text)
    assert {item: usd for item, (usd, _) in found.believed.items()} == EXPECTED | COMMITTED
    assert {day for _, day in found.believed.values()} == {date(2026, 11, 1)}
    assert "nlb_hour" in found.missing  # an application load balancer's hour is not one


class _Trickle(io.TextIOBase):
    """A file that gives no more than so many characters at a time."""

    def __init__(self, text: str, size: int) -> None:
        self._text, self._size = io.StringIO(text), size

    def read(self, size: int | None = -1, /) -> str:
        return self._text.read(min(size or 1, self._size) if size and size > 0 else self._size)


@given(st.integers(1, 700))
def test_where_a_chunk_ends_changes_nothing(size: int) -> None:
    found = gathered(_Trickle(as_json(), size))
    assert {item: usd for item, (usd, _) in found.believed.items()} == EXPECTED | COMMITTED


class _Endless(io.TextIOBase):
    """An offer file of so many products, made while it is read."""

    def __init__(self, products: int) -> None:
        self.characters, self._rest = 0, ""
        self._parts = self._made(products)

    def _made(self, products: int) -> Iterator[str]:
        whole = json.loads(as_json())
        filler = whole["products"]["SKU0003"]
        term = whole["terms"]["OnDemand"]["SKU0003"]
        yield '{"offerCode":"AmazonEC2","publicationDate":"2026-11-01T00:00:00Z","products":{'
        for number in range(products):
            yield f'"F{number:08}":{json.dumps(filler)},'
        yield json.dumps(whole["products"])[1:] + ',"terms":{"OnDemand":{'
        for number in range(products):
            yield f'"F{number:08}":{json.dumps(term)},'
        yield json.dumps(whole["terms"]["OnDemand"])[1:] + "}}"

    def read(self, size: int | None = -1, /) -> str:
        wanted = size or 1
        while len(self._rest) < wanted and (part := next(self._parts, "")):
            self._rest += part
        found, self._rest = self._rest[:wanted], self._rest[wanted:]
        self.characters += len(found)
        return found


def test_a_large_file_is_read_in_bounded_memory() -> None:
    file = _Endless(3_000)
    tracemalloc.start()
    try:
        found = gathered(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.believed) == len(EXPECTED)
    assert file.characters > 1_200_000
    assert peak < 1_000_000


@every_case(
    "text", ["", "{", "[]", "<html>", "{}", as_json()[:-200], '{"products": 4}', "a,b\n1,2"]
)
def test_what_is_no_offer_file_is_a_sentence(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not an offer file of AWS's price list"):
        gathered(text)


def test_a_price_quoted_twice_with_a_difference_is_not_believed() -> None:
    found = gathered(as_json((*IRELAND, ("AmazonEC2", "EU-NatGateway-Hours", "x", "0.05"))))
    assert found.contradicted == {"nat_hour": {Decimal("0.048"), Decimal("0.05")}}
    assert "nat_hour" not in found.believed


def test_another_regions_file_and_another_currency_are_sentences() -> None:
    assert "what was read is of eu-west-1" in gathered(as_json(), "ap-southeast-1").problems()[0]
    assert "are in CNY" in gathered(as_json(currency="CNY")).problems()[0]
    assert gathered(as_json()).problems() == []


@every_case("prefix", ["", "EU-", "EUW3-", "APS1-", "USE1-", "MXC1-"])
def test_a_usage_type_is_known_whatever_its_regions_code(prefix: str) -> None:
    product = Product(
        service="AmazonEKS",
        region="r",
        usage_type=f"{prefix}AmazonEKS-Hours:perCluster",
        operation="",
    )
    assert price_list.item_of(product) == "eks_cluster_hour"


@every_case(
    ("service", "usage_type", "item"),
    [
        ("AWSLambda", "EUW1-Lambda-GB-Second-ARM", "lambda_arm_gib_second"),
        ("AWSLambda", "EUW1-Request-ARM", "lambda_request"),
        ("AWSQueueService", "Requests-RBP", "sqs_request"),
        ("AmazonDynamoDB", "EU-WriteRequestUnits", "dynamodb_write_unit"),
        ("AmazonCloudWatch", "EU-CW:GMD-Metrics", "metric_asked"),
        ("AmazonCloudWatch", "EU-CW:HighResAlarmMonitorUsage", None),
        ("AWSSecretsManager", "EU-AWSSecretsManager-Secrets", "secret_month"),
    ],
)
def test_usage_types_find_what_we_use(service: str, usage_type: str, item: str | None) -> None:
    product = Product(service=service, region="r", usage_type=usage_type, operation="")
    assert price_list.item_of(product) == item


def test_the_book_keeps_what_it_had_and_is_read_back() -> None:
    before = json.loads(pricing.read_shipped("prices.json"))
    before["regions"]["eu-west-1"]["instance_hour:m7g.large"] = {"source": "derived", "usd": "9"}
    made = price_list.document(gathered(as_json()), before, "AWS Price List")
    books = pricing.parse(json.dumps(made))
    assert books["us-east-1"].prices == pricing.book("us-east-1").prices
    assert books["eu-west-1"].usd("instance_hour:m7g.large") == Decimal("0.0911")
    price = books["eu-west-1"].price("gp3_gib_month")
    assert (price.usd, str(price.as_of)) == (Decimal("0.088"), "2026-11-01")
    assert price_list.document(gathered(as_json()), made, "AWS Price List") == made
