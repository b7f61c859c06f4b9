"""Commands about a cluster that exists: its description stands where an environment does."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli import target
from cli.target import Cluster
from core.ground.errors import InvalidInput

ONE = """
adopt:
  eks_cluster: shop
  region: eu-north-1
  kafkas:
    - {namespace: shop-kafka, name: orders}
  node_pools: [kafka]
"""
SECOND = "    - {namespace: lab, name: trial, called: lab-trial}\n"
TWO = ONE.replace("  node_pools", f"{SECOND}  node_pools")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    path = tmp_path / "shop.yaml"
    path.write_text(ONE)
    return path


def test_the_one_kafka_of_a_description_needs_no_name(shop: Path) -> None:
    desk = Cluster.named(str(shop))
    assert (desk.table, desk.spec.name, desk.spec.region) == (
        *("shop-orders-incidents", "orders", "eu-north-1"),
    )


def test_of_several_one_is_named_by_what_is_ours(shop: Path) -> None:
    shop.write_text(TWO)
    assert target.find_kafka(f"{shop}#lab-trial").name == "trial"
    for named, why in ((str(shop), "has 2 Kafkas"), (f"{shop}#other", "names no other")):
        with pytest.raises(InvalidInput) as refused:
            target.find_kafka(named)
        assert f"{why}; name one of {shop}#shop-orders, {shop}#lab-trial." in str(refused.value)


def test_what_our_stacks_alone_have_is_refused_in_a_sentence(shop: Path) -> None:
    with pytest.raises(InvalidInput, match="shop-orders is a cluster that exists"):
        _ = Cluster.named(str(shop)).own_spec


@pytest.mark.parametrize(("named", "meant"), [("prod", False), ("a/shop.yml#x", True)])
def test_a_file_is_told_from_an_environment_by_its_name(named: str, *, meant: bool) -> None:
    assert target.is_description(named) is meant
