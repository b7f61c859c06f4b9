"""`stillwater adopt plan`: words, a diff, and a sentence with its place for every mistake."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from cli.main import app

DESCRIPTION = """\
adopt:
  eks_cluster: shop
  region: eu-north-1
  kafkas:
    - {namespace: shop-kafka, name: orders, bootstrap: "orders:9093", credentials_secret: eyes}
  scaling_groups: [kafka-a]
"""


def test_a_plan_says_what_is_added_and_how_to_leave(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(DESCRIPTION)
    done = CliRunner().invoke(app, ["adopt", "plan", str(path)])
    assert done.exit_code == 0
    assert "from survey to watch. Nothing of theirs is written" in done.stdout
    assert "--- survey\n+++ watch\n+ DynamoDB table shop-orders-incidents: " in done.stdout
    assert "\n  Auto Scaling group kafka-a: as it is\n" in done.stdout
    assert "To leave it again, delete what was added" in done.stdout
    assert "`pulumi up` of a stack <name>-operations makes it." in done.stdout


def test_at_the_last_level_nothing_is_left_to_do(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    filled = {
        "level": "act",
        "drainer": "none",
        "pool_label": "pool",
        "subnets": "[subnet-0123456789abcdef0]",
        "security_groups": "[sg-0123456789abcdef0]",
    }
    added = "".join(f"  {key}: {value}\n" for key, value in filled.items())
    path.write_text(DESCRIPTION.replace(", credentials_secret: eyes", "") + added)
    done = CliRunner().invoke(app, ["adopt", "plan", str(path)])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.replace("\n", " ").strip() == f"{path}: shop is at act, the last level."


def test_a_mistake_is_a_sentence_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(DESCRIPTION.replace("eu-north-1", "Stockholm"))
    done = CliRunner().invoke(app, ["adopt", "plan", str(path)])
    assert done.exit_code == 2
    assert f"{path}:3:" in done.stderr.replace("\n", "")
    assert "region is 'Stockholm'" in done.stderr


def test_a_group_in_two_descriptions_is_refused(tmp_path: Path) -> None:
    for name in ("shop", "lab"):
        (tmp_path / f"{name}.yaml").write_text(DESCRIPTION.replace("orders", name))
    done = CliRunner().invoke(
        app, ["adopt", "plan", str(tmp_path / "shop.yaml"), str(tmp_path / "lab.yaml")]
    )
    assert done.exit_code == 2
    assert "Auto Scaling group kafka-a is in" in done.stderr
