"""What stands beside a surveyed cluster at each level: AWS refuses nothing, and it can be left."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from cli.survey import draft
from core.cluster import adoption
from local.refusals import gate
from stacks.program import main
from tests.unit.cli.survey.changes import without
from tests.unit.cli.survey.changes_of_machines import karpenters, of_eks
from tests.unit.cli.survey.descriptions import at, described
from tests.unit.cli.survey.others import combined, own, terraform_aws_eks, two_kafkas
from tests.unit.cli.survey.worlds import World
from tests.unit.infra.aws_gate import wanted
from tests.unit.infra.recording import run_program


def own_without_handler() -> World:
    world = own()
    without("termination-handler")(world)
    return world


TAKEN: dict[str, tuple[Callable[[], World], tuple[str, ...]]] = {
    "groups and a handler": (own, ("watch", "gate", "act")),
    "groups without a handler": (own_without_handler, ("watch", "gate", "act")),
    "combined roles": (combined, ("watch", "gate", "act")),
    "managed node groups": (of_eks(), ("watch", "gate")),
    "one managed node group": (terraform_aws_eks, ("watch", "gate")),
    "Karpenter": (karpenters(), ("watch", "gate")),
    "two Kafkas of one name": (two_kafkas, ("watch", "gate")),
}


@pytest.mark.parametrize(("build", "levels"), TAKEN.values(), ids=TAKEN.keys())
def test_at_every_level_it_is_taken_and_aws_refuses_nothing_of_it(
    build: Callable[[], World], levels: tuple[str, ...], cache: None
) -> None:
    section, text = described(build())
    adoption.parse({"adopt": section})
    assert draft.refusals(text) == []
    for level in levels:
        raw = at(level, section)
        adoption.parse(raw)
        stack = run_program(
            main, stack_name="shop-operations", config={"cluster": json.dumps(raw)}, real_sizes=True
        )
        found = gate.all_refusals(wanted({"operations": stack}))
        assert [refusal.sentence for refusal in found] == []
