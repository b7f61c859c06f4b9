"""`stillwater estimate`: a table, JSON for programs, a sentence where it has no price."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from core.cost import pricing
from core.ground.errors import InvalidInput

EXAMPLE = Path(__file__).resolve().parents[3] / "stacks" / "config" / "clusters" / "example.yaml"


def estimated(*arguments: str, spec: Path = EXAMPLE) -> Result:
    return CliRunner().invoke(app, ["estimate", str(spec), *arguments])


def test_the_table_ends_in_the_total_and_says_what_it_assumes() -> None:
    shown = estimated().output
    assert "1,295.03" in shown
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
    assert document["total"] == "5070.67"
    assert sum(Decimal(line["usd"]) for line in document["lines"]) == Decimal("5070.67")
    assert all(line["source"] and line["as_of"] for line in document["lines"])
    assert document["usage"]["produce_mib_per_s"] == "10.0"


@pytest.mark.parametrize("region", ["eu-west-1", "ap-southeast-1"])
def test_a_region_without_prices_is_counted_and_its_dollars_are_unknown(
    region: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "spec.yaml"
    elsewhere.write_text(EXAMPLE.read_text().replace("us-east-1", region))
    done = estimated(spec=elsewhere)
    assert done.exit_code == 0
    assert "unknown" in done.output
    command = f"stillwater prices fetch --region {region}"
    document = json.loads(estimated("--json", spec=elsewhere).output)
    assert (document["total"], document["prices_as_of"]) == (None, None)
    assert command in document["unpriced"]
    assert all(line["quantity"] and line["usd"] is None for line in document["lines"])


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
    assert "1,660.03" in estimated("--prices", str(own)).output  # 730 x 0.5 more


@pytest.mark.parametrize("wrong", ["-1", "nan", "inf"])
def test_a_use_that_cannot_be_is_a_sentence(wrong: str) -> None:
    refused = estimated("--produce-mib-per-s", wrong).exception
    assert isinstance(refused, InvalidInput)
    assert str(refused).startswith("produce_mib_per_s is ")
