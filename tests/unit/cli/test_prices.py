"""`stillwater prices fetch` and `estimate`: price files, and what they say of a cluster."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from cli import prices
from cli.main import app
from cli.prices import fetch
from cli.stack_settings import Project
from core.cost import pricing
from core.ground.errors import InvalidInput
from tests.unit.core.cost.test_pricing import as_json

EXAMPLE = Path(__file__).resolve().parents[3] / "stacks" / "config" / "clusters" / "example.yaml"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["prices", "fetch", *arguments])


def test_files_become_prices_that_estimate_uses(tmp_path: Path) -> None:
    offer, other, book = tmp_path / "ec2.json.gz", tmp_path / "ec2.json", tmp_path / "prices.json"
    offer.write_bytes(gzip.compress(as_json().encode()))
    other.write_text(as_json())
    done = run(
        "--region", "eu-west-1", "--from", str(offer), "--from", str(other), "--output", str(book)
    )
    assert done.exit_code == 0, done.exception
    assert "8 prices of eu-west-1, 1 of them instance types" in done.output
    assert "Not found: gp2_gib_month" in done.output
    spec = tmp_path / "spec.yaml"
    spec.write_text(EXAMPLE.read_text().replace("us-east-1", "eu-west-1"))
    shown = CliRunner().invoke(app, ["estimate", str(spec), "--prices", str(book), "--json"])
    lines = {line["item"]: line["unit_usd"] for line in json.loads(shown.output)["lines"]}
    assert (lines["gp3_gib_month"], lines["eks_cluster_hour"]) == ("0.088", None)


@pytest.mark.parametrize(
    ("region", "content", "sentence"),
    [
        ("eu-west-1", b"<html>", "is not an offer file"),
        ("eu-west-1", gzip.compress(as_json().encode(), mtime=0)[:200], "cannot be read"),
        ("ap-south-1", as_json().encode(), "what was read is of eu-west-1"),
        ("us-gov-west-1", b"", "AWS GovCloud"),
        ("cn-north-1", b"", "the China partition"),
    ],
    ids=["a page", "cut short", "another region's", "GovCloud", "China"],
)
def test_what_cannot_be_used_is_a_sentence_and_writes_nothing(
    region: str, content: bytes, sentence: str, tmp_path: Path
) -> None:
    offer, book = tmp_path / "index.json", tmp_path / "prices.json"
    offer.write_bytes(content)
    done = run("--region", region, "--from", str(offer), "--output", str(book))
    assert isinstance(done.exception, InvalidInput)
    assert sentence in str(done.exception)
    assert not book.exists()


@pytest.fixture
def offer(tmp_path: Path) -> Path:
    path = tmp_path / "index.json"
    path.write_text(as_json())
    return path


def test_a_directory_of_ones_own_keeps_its_prices_and_every_command_there_finds_them(
    tmp_path: Path, offer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    (own / "clusters").mkdir(parents=True)
    (own / "Pulumi.yaml").write_text("name: x\n")
    spec = own / "clusters" / "prod.yaml"
    spec.write_text(EXAMPLE.read_text().replace("us-east-1", "eu-west-1"))
    before = pricing.SHIPPED.read_bytes()
    monkeypatch.chdir(own / "clusters")
    assert run("--region", "eu-west-1", "--from", str(offer)).exit_code == 0
    assert pricing.SHIPPED.read_bytes() == before
    assert "eu-west-1" in json.loads((own / "prices.json").read_text())["regions"]
    shown = CliRunner().invoke(app, ["estimate", str(spec), "--json"])
    lines = {line["item"]: line["unit_usd"] for line in json.loads(shown.output)["lines"]}
    assert (lines["gp3_gib_month"], lines["eks_cluster_hour"]) == ("0.088", "0.1")
    checked = CliRunner().invoke(app, ["prices", "check", "--region", "eu-west-1"])
    assert str(own / "prices.json") in checked.output


def test_where_there_is_no_directory_of_ones_own_nothing_of_the_installed_release_is_changed(
    tmp_path: Path, offer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere() -> Project:
        raise InvalidInput(["There is no Pulumi.yaml here: write one."])

    monkeypatch.setattr(prices, "find", nowhere)
    done = run("--region", "eu-west-1", "--from", str(offer))
    assert isinstance(done.exception, InvalidInput)
    assert "write one; or name the file to write with --output." in str(done.exception)


def test_prices_are_not_written_over_what_is_no_price_file(tmp_path: Path, offer: Path) -> None:
    book = tmp_path / "prices.json"
    book.write_bytes(b"\xff\xd8")
    done = run("--region", "eu-west-1", "--from", str(offer), "--output", str(book))
    assert "cannot be read: it is not UTF-8 text" in str(done.exception)


def test_what_was_fetched_is_one_document_for_programs(tmp_path: Path, offer: Path) -> None:
    book = tmp_path / "prices.json"
    done = run("--region", "eu-west-1", "--from", str(offer), "--output", str(book), "--json")
    said = json.loads(done.stdout)
    assert said["prices"]["gp3_gib_month"]["usd"] == "0.0880000000"
    assert (said["file"], said["contradicted"]) == (str(book), {})
    assert "gp2_gib_month" in said["missing"]


class FakePriceList:
    """Answers GetProducts with the entries of an offer file, one per page."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get_paginator(self, _name: str) -> FakePriceList:
        return self

    def paginate(self, **asked: Any) -> Iterator[dict[str, list[str]]]:
        self.asked.append(asked["ServiceCode"])
        whole = json.loads(as_json())
        for sku, product in whole["products"].items():
            if product["attributes"]["servicecode"] == asked["ServiceCode"]:
                terms = {"OnDemand": whole["terms"]["OnDemand"][sku]}
                entry = {"product": product, "terms": terms, "serviceCode": "AmazonEC2"}
                entry["publicationDate"] = "2026-11-01T00:00:00Z"
                yield {"PriceList": [json.dumps(entry)]}


def test_aws_is_asked_for_every_service_of_the_book(tmp_path: Path) -> None:
    book, asked = tmp_path / "prices.json", FakePriceList()
    fetch("eu-west-1", [], book, Console(quiet=True), asked)
    assert {"AmazonEC2", "AmazonEKS", "AWSELB", "awskms"} <= set(asked.asked)
    assert pricing.book("eu-west-1", book).usd("instance_hour:m7g.large") == Decimal("0.0911")


def estimated(*arguments: str, spec: Path = EXAMPLE) -> Result:
    return CliRunner().invoke(app, ["estimate", str(spec), *arguments])


def test_the_table_ends_in_the_total_and_says_what_it_assumes() -> None:
    shown = estimated().output
    assert "1,306.36" in shown
    assert all(word in shown for word in ("Assumed: 0 MiB/s produced", "Not counted:", "us-east-1"))


def test_the_tutorial_names_what_its_own_cluster_costs(tmp_path: Path) -> None:
    tutorial = (EXAMPLE.parents[3] / "docs" / "tutorial.md").read_text()
    options = tutorial.partition("stillwater init kafka ")[2].partition(" --secrets-provider")[0]
    assert CliRunner().invoke(app, ["init", str(tmp_path), *options.split()]).exit_code == 0
    made = estimated("--json", spec=tmp_path / "clusters" / "try.yaml")
    total = Decimal(json.loads(made.output)["total"])
    assert f"about {round(total, -1):,f} USD a month without traffic" in tutorial


def test_json_adds_up_and_names_every_source() -> None:
    document = json.loads(estimated("--json", "--produce-mib-per-s", "10", "--readers", "2").output)
    assert document["total"] == "5082.00"
    assert sum(Decimal(line["usd"]) for line in document["lines"]) == Decimal("5082.00")
    assert all(line["source"] and line["as_of"] for line in document["lines"])
    assert document["usage"]["produce_mib_per_s"] == "10.0"
    assert document["answers"]["in_own_zone"] == "2909.11"
    assert document["answers"]["committed_3y"] is None


def test_two_regions_stand_side_by_side_and_no_sum_hides_a_missing_price() -> None:
    shown = estimated("--compare", "ca-west-1", "--produce-mib-per-s", "10").output
    rows = {line.split("  ")[0].strip(): line.split()[-3:] for line in shown.splitlines()}
    assert rows["snapshots"] == ["273.00", "300.30", "+27.30"]
    assert rows["load balancer"][1:] == rows["a month"][2:] * 2 == ["unknown", "unknown"]
    both = json.loads(estimated("--compare", "eu-west-1", "--json").output)
    assert (both["region"], both["compared"]["region"]) == ("us-east-1", "eu-west-1")
    assert "no environment nowhere" in str(estimated("--compare", "nowhere").exception)


def test_extended_support_is_counted_where_it_is_chosen(tmp_path: Path) -> None:
    chosen = tmp_path / "spec.yaml"
    kept = "kubernetes:\n"
    chosen.write_text(EXAMPLE.read_text().replace(kept, f"{kept}  upgrade_policy: extended\n", 1))
    (line,) = [
        each
        for each in json.loads(estimated("--json", spec=chosen).output)["lines"]
        if each["item"] == "eks_extended_support_hour"
    ]
    assert (line["quantity"], line["usd"]) == ("730", "365.00")


def test_a_users_own_prices_take_the_place_of_the_shipped(tmp_path: Path) -> None:
    document = json.loads(pricing.SHIPPED.read_text())
    document["regions"]["us-east-1"]["eks_cluster_hour"]["usd"] = "0.6"
    own = tmp_path / "prices.json"
    own.write_text(json.dumps(document))
    assert "1,671.36" in estimated("--prices", str(own)).output  # 730 x 0.5 more
