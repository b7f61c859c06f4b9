"""The price book: dated rows by region, AWS's offer files, and what a bill says of it."""

import io
import json
import tracemalloc
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cluster import estimate
from core.cost import price_list, pricing
from core.cost.price_list import (
    BilledRate,
    Gathered,
    Product,
    checked_item_of,
    disagreements,
    far_off,
    outdated_prices,
)
from core.ground.errors import InvalidInput
from tests.every_case import every_case


def a_price_file(**changes: Any) -> str:
    document = {
        "currency": "USD",
        "sources": {"list": {"title": "AWS Price List", "as_of": "2026-11-01"}},
        "regions": {
            "eu-west-1": {
                "instance_hour": {"source": "list", "usd": {"m7i.large": "0.1124"}},
                "gp3_gib_month": {"source": "list", "usd": 0.088},
            }
        },
    }
    return json.dumps({**document, **changes})


def test_the_shipped_book_prices_what_the_twin_runs() -> None:
    book = pricing.book("us-east-1")
    assert book.instance_hour("m7i.large").usd == Decimal("0.1008")
    assert book.instance_hour("r7g.large").usd == Decimal("0.1071")
    assert book.price("gp3_gib_month").usd == Decimal("0.08")
    assert all(book.price(item).usd > 0 for item in pricing.ITEMS if item not in pricing.PER_TYPE)


def test_every_shipped_price_names_its_source_and_its_day() -> None:
    prices = pricing.book("us-east-1").prices.values()
    assert all(price.source and price.as_of <= date(2026, 11, 29) for price in prices)


def test_the_throughput_price_is_per_gibps_and_agrees_with_the_price_per_mibps() -> None:
    # 0.04 per MiBps-month is what the line's description says; its price is per GiBps.
    assert pricing.book("us-east-1").price("gp3_gibps_month").usd == Decimal("0.04") * 1024


def test_a_directorys_own_prices_stand_over_the_shipped_ones(tmp_path: Path) -> None:
    own = tmp_path / pricing.OWN
    us = {"gp3_gib_month": {"source": "list", "usd": "0.09"}}
    regions = {**json.loads(a_price_file())["regions"], "us-east-1": us}
    own.write_text(a_price_file(regions=regions))
    book = pricing.book("us-east-1", own=own)
    assert book.usd("gp3_gib_month") == Decimal("0.09")
    assert book.usd("nat_hour") == pricing.book("us-east-1").usd("nat_hour")
    assert pricing.book("eu-west-1", own=own).usd("gp3_gib_month") == Decimal("0.088")
    # What it knows nothing of is as shipped, and a file that is named is asked alone.
    assert pricing.book("mars-1", own=own).name == "The shipped price file"
    assert pricing.book("us-east-1", own).usd("nat_hour") is None


def test_a_region_without_prices_has_a_book_that_knows_none() -> None:
    book = pricing.book("us-iso-east-1")
    assert (book.region, dict(book.prices)) == ("us-iso-east-1", {})


def test_an_unknown_price_names_the_command_that_fetches_it() -> None:
    with pytest.raises(InvalidInput, match="`stillwater prices fetch --region me-south-1`"):
        pricing.book("me-south-1").price("nlb_lcu_hour")


def test_every_region_knows_what_a_cluster_runs_on_and_a_derived_price_says_so() -> None:
    assert len(books := pricing.load()) == 34
    chosen = {f"instance_hour:{name}" for name in estimate.CANDIDATES}
    known = {"gp3_gib_month", "nat_hour", "eks_cluster_hour", *chosen}
    assert [name for name, each in books.items() if not known <= set(each.prices)] == []
    assert books["eu-west-1"].price("instance_hour:i8g.4xlarge").source.startswith("Derived")
    assert pricing.load(region="eu-west-1") == {"eu-west-1": books["eu-west-1"]}


@every_case(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("[]", 'has no "regions" object'),
        (a_price_file(regions=[]), 'has no "regions" object'),
        (a_price_file(currency="EUR"), "is in 'EUR'; only prices in USD"),
        (a_price_file(sources={"list": {"title": "x", "as_of": "soon"}}), 'an "as_of" date'),
        (a_price_file(sources=None), 'has no "sources" object'),
        (a_price_file(regions={"r": 4}), "region r must hold an object of prices"),
        (a_price_file(regions={"r": {"gp3_gib_month": {"source": "list", "usd": "cheap"}}}),
            "r gp3_gib_month: 'cheap' is not a price"),
        (a_price_file(regions={"r": {"gp3_gib_month": {"source": "list", "usd": "-1"}}}),
            "'-1' is not a price"),
        (a_price_file(regions={"r": {"gp3_gib_month": {"source": "list", "usd": "NaN"}}}),
            "'NaN' is not a price"),
        (a_price_file(regions={"r": {"gp3_gib_month": {"source": "list"}}}), "None is not a price"),
        (a_price_file(regions={"r": {"gp3_gib_month": {"source": "rumour", "usd": "1"}}}),
            "names no known source"),
        (a_price_file(regions={"r": {"gp9_gib_month": {}}}), "is not a known item"),
    ],
)  # fmt: skip
def test_a_malformed_price_file_is_one_sentence_per_problem(text: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        pricing.parse(text, name="prices.json")
    assert sentence in raised.value.problems[0]
    assert all(p.startswith("prices.json") and p.endswith(".") for p in raised.value.problems)


def test_a_price_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        pricing.load(tmp_path / "none.json")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_any_json_is_a_book_or_sentences_never_another_error(anything: Any) -> None:
    for text in (json.dumps(anything), a_price_file(regions={"r": {"gp3_gib_month": anything}})):
        with pytest.raises(InvalidInput):
            pricing.parse(text)


@pytest.mark.parametrize(("iops", "billed"), [(3000, 0), (3001, 1), (16000, 13000), (100, 0)])
def test_only_iops_above_the_included_ones_cost(iops: int, billed: int) -> None:
    assert pricing.billed_iops(iops) == billed


def test_only_throughput_above_the_included_one_costs() -> None:
    assert pricing.billed_gib_per_s(125) == 0
    assert pricing.billed_gib_per_s(125 + 256) == Decimal("0.25")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-1e9, max_value=1e9))
def test_equal_amounts_print_alike(amount: Decimal) -> None:
    padded = amount.quantize(Decimal("0.000000000000000001"))
    assert str(pricing.plain(padded)) == str(pricing.plain(amount))
    assert pricing.plain(amount) == amount


def test_a_sum_keeps_every_digit_of_a_very_large_bill() -> None:
    amounts = [Decimal("12345678901234567890.000000000000000001")] * 3
    assert pricing.total(amounts) == Decimal("37037036703703703670.000000000000000003")


def test_prices_do_not_stand_beside_a_bill_in_another_currency() -> None:
    book = pricing.book("us-east-1")
    assert book.beside("USD").find("gp3_gib_month") is not None
    assert book.beside("EUR").find("gp3_gib_month") is None


BOOK = pricing.book("us-east-1")


def billed(usage_type: str, quantity: str, cost: str) -> BilledRate:
    return BilledRate(usage_type, Decimal(quantity), Decimal(cost))


@pytest.mark.parametrize(
    ("usage_type", "item"),
    [
        ("BoxUsage:r7g.2xlarge", "instance_hour:r7g.2xlarge"),
        ("EBS:VolumeP-Throughput.gp3", "gp3_gibps_month"),
        ("DataTransfer-Regional-Bytes", "inter_zone_gib"),
        ("SpotUsage:r7g.2xlarge", None),
        ("EBS:VolumeUsage.gp3.more", None),
    ],
)
def test_a_usage_type_is_a_row_of_the_book_or_none(usage_type: str, item: str | None) -> None:
    assert checked_item_of(usage_type) == item


def test_a_bill_that_charges_what_the_book_says_is_no_news() -> None:
    assert disagreements(BOOK, [billed("EBS:VolumeUsage.gp3", "1000", "80.0001")]) == []


def test_a_price_that_moved_is_told_with_both_figures() -> None:
    (found,) = disagreements(BOOK, [billed("EBS:VolumeUsage.gp3", "1000", "96")])
    assert found.sentence == (
        "gp3_gib_month is 0.08 USD (read on 2024-09-30); the bill charges 0.096000 over 1000 units "
        "of EBS:VolumeUsage.gp3, +20.0%."
    )


def test_a_report_names_the_prices_that_are_off_by_more_than_a_tenth() -> None:
    rates = [billed("EBS:VolumeUsage.gp3", "1000", "87"), billed("NatGateway-Hours", "100", "4")]
    (told,) = far_off(BOOK, [*rates, billed("BoxUsage:u7i.large", "10", "20")])
    assert told.startswith("A list price is far from this bill's: nat_hour is 0.045 USD")


def test_what_the_book_lacks_is_told() -> None:
    (found,) = disagreements(BOOK, [billed("BoxUsage:u7i.large", "10", "20")])
    assert found.price is None
    assert found.sentence.startswith("instance_hour:u7i.large has no price; the bill charges 2.0")


def test_the_dearest_disagreement_comes_first_and_nothing_is_divided_by_zero() -> None:
    rates = [
        billed("EBS:VolumeUsage.gp3", "1", "1"),
        billed("NatGateway-Hours", "100", "9"),
        billed("EBS:VolumeP-IOPS.gp3", "0", "0"),
    ]
    assert [each.item for each in disagreements(BOOK, rates)] == ["nat_hour", "gp3_gib_month"]


def test_old_rows_are_those_nobody_read_for_long() -> None:
    aged = outdated_prices(BOOK, date(2026, 11, 21))
    assert {price.as_of for price in aged} == {date(2024, 9, 30)}
    assert outdated_prices(BOOK, date(2026, 11, 21), days=1000) == []


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
    for quoted in price_list.read_quotes(file, "index", found.wants):
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
