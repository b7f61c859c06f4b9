"""A caller who may not list one kind, or make one call, hears that, and no news made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli.survey import command
from core.checks.finding import Finding, Weight
from core.checks.table import findings
from tests.unit.cli.survey.around import CLUSTER
from tests.unit.cli.survey.further_changes import of_ecr, role
from tests.unit.cli.survey.others import bound, changed, own
from tests.unit.cli.survey.platforms import short, template
from tests.unit.cli.survey.worlds import World


# A cluster with something wrong of its own, so that a part of it may go missing.
def build() -> World:
    world = changed(changed(own, bound), short)()
    parts = {"ImageId": "ami-1", "SecurityGroupIds": ["sg-1"], "KeyName": "ops"}
    encrypted = {"BlockDeviceMappings": [{"Ebs": {"KmsKeyId": "alias/mine"}}]}
    role("eks-nodes", mode="API_AND_CONFIG_MAP", known=("eks-nodes",))(world)
    template(**parts, **encrypted)(world)
    world.profiles["web"] = []
    of_ecr("ImageNotFoundException", cached="strimzi")(world)
    world.routes["a"].pop()
    return world


class Asked:
    """A client that notes its calls and refuses one of them."""

    def __init__(self, world: World, refused: str = "") -> None:
        self.world, self.refused, self.calls = world, refused, set[str]()

    def __getattr__(self, call: str) -> Callable[..., Any]:
        self.calls.add(call)
        if call != self.refused:
            found: Callable[..., Any] = getattr(self.world, call)
            return found

        def refuse(*_: Any, **__: Any) -> Any:
            error = {"Error": {"Code": "AccessDenied", "Message": "not authorized"}}
            raise ClientError(error, call)

        return refuse

    def can_paginate(self, call: str) -> bool:
        return self.world.can_paginate(call)

    def get_paginator(self, call: str) -> Any:
        self.calls.add(call)
        if call == self.refused:
            return type("Pages", (), {"paginate": staticmethod(getattr(self, call))})
        return self.world.get_paginator(call)


class Listed(World):
    """A world that notes which kinds are listed."""

    kinds_asked: set[str]

    def _request(self, method: str, path: str, *given: Any, **named: Any) -> Any:
        self.kinds_asked.add(path.rpartition("/")[2])
        return super()._request(method, path, *given, **named)


def read(world: World, refused: str = "") -> tuple[list[Finding], set[str]]:
    client = Asked(world, refused)
    return findings(command.read(world, lambda *_: client, None, CLUSTER)), client.calls


def _everything() -> tuple[list[Finding], list[str], list[str]]:
    world = build()
    world.__class__ = Listed
    world.kinds_asked = set()  # type: ignore[attr-defined]
    found, calls = read(world)
    return found, sorted(world.kinds_asked), sorted(calls - {"meta"})  # type: ignore[attr-defined]


WHOLE, KINDS, CALLS = _everything()


def keys(found: list[Finding]) -> set[tuple[str, str, Weight]]:
    return {(each.check, each.subject, each.weight) for each in found}


def only_unknown_is_new(found: list[Finding]) -> None:
    new = keys(found) - keys(WHOLE)
    assert new, "nothing says that it was refused"
    assert {weight for _, _, weight in new} == {Weight.UNKNOWN}, new


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_kind_that_may_not_be_listed_nothing_is_made(kind: str) -> None:
    world = build()
    world.refused.add(kind)
    only_unknown_is_new(read(world)[0])


@pytest.mark.parametrize("call", CALLS)
def test_of_a_call_that_may_not_be_made_nothing_is_made(call: str) -> None:
    only_unknown_is_new(read(build(), call)[0])
