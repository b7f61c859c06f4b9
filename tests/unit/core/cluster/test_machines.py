"""core.checks.contradictions: instance types that can be no node here."""

from __future__ import annotations

import pytest

from core.checks import contradictions
from core.cluster import parse
from core.ground import instances
from tests.every_case import every_case
from tests.unit.infra.programs import BROKER, CONTROLLER, description

ACCELERATED = ("g5", "g5g", "g4dn", "gr6", "p4d", "p5en", "p6-b200", "inf2", "trn1n", "dl1", "vt1")


def found(name: str) -> list[str]:
    pools = [CONTROLLER, {**BROKER, "instance_type": name}]
    return list(contradictions.machine_problems(parse(description(pools=pools))))


@every_case(
    "name", ["r7g.32xlarge", "m7i.metal-24xl", "r7g.metal", "q9z.large", "r5a.xlarge", "m4.large"]
)
def test_what_may_have_come_since_is_not_refused(name: str) -> None:
    assert found(name) == []


@every_case("family", ACCELERATED)
def test_what_needs_another_image_is_refused(family: str) -> None:
    (sentence,) = found(f"{family}.xlarge")
    assert "need an image with their drivers" in sentence
    assert sentence.endswith("choose another type.")


@pytest.mark.parametrize("name", ["t2.large", "t1.micro", "m1.small", "m3.medium", "c3.large"])
def test_what_is_never_optimized_for_ebs_is_refused(name: str) -> None:
    (sentence,) = found(name)
    assert "launched EBS-optimized" in sentence


def test_no_type_of_the_table_is_refused() -> None:
    assert [name for name in instances.table().types if found(name)] == []


def test_the_system_nodes_are_looked_at_too() -> None:
    spec = parse(description(kubernetes={"system_instance_type": "g5.xlarge"}))
    assert "g5.xlarge of the system nodes cannot be a node" in next(
        contradictions.machine_problems(spec)
    )
