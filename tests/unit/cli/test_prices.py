"""`stillwater prices fetch`: offer files and GetProducts into a price file."""

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
from tests.unit.core.cost.offers import as_json

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
    assert "6 prices of eu-west-1, 1 of them instance types" in done.output
    assert "Not found: gp2_gib_month" in done.output
    spec = tmp_path / "spec.yaml"
    spec.write_text(EXAMPLE.read_text().replace("us-east-1", "eu-west-1"))
    shown = CliRunner().invoke(app, ["estimate", str(spec), "--prices", str(book), "--json"])
    lines = {line["item"]: line["unit_usd"] for line in json.loads(shown.output)["lines"]}
    assert (lines["gp3_gib_month"], lines["eks_cluster_hour"]) == ("0.088", None)


@pytest.mark.parametrize(
    ("region", "content", "sentence"),
    [
        ("eu-west-1", b"<html>", "is no offer file"),
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
    assert (lines["gp3_gib_month"], lines["eks_cluster_hour"]) == ("0.088", None)
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
