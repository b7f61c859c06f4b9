"""Changes of machines below a healthy Kafka: groups, instances, pools, and who may drain them."""

import copy
from collections.abc import Callable
from typing import Any

from tests.unit.cli.survey.changes import both, without
from tests.unit.cli.survey.machines import managed, provisioned
from tests.unit.cli.survey.worlds import Change, World, bare

DELETED = "2026-11-01T00:00:00Z"
TRACKING = {"PolicyName": "cpu", "PolicyType": "TargetTrackingScaling"}


def karpenters(**spec: Any) -> Callable[[], World]:
    return lambda: provisioned(bare(), **copy.deepcopy(spec))


def of_eks(**said: Any) -> Callable[[], World]:
    return lambda: managed(bare(), **copy.deepcopy(said))


def policy(world: World) -> None:
    world.policies[min(world.groups)] = [{**TRACKING, "TargetTrackingConfiguration": {}}]


def action(world: World) -> None:
    world.actions[min(world.groups)] = [{"ScheduledActionName": "night", "DesiredCapacity": 0}]


def started_by(*tags: str) -> Change:
    """Take the groups away: somebody else has started the machines, and tagged them so."""

    def made(world: World) -> None:
        world.member_of, world.groups = {}, {}
        for each in world.instances.values():
            each["Tags"] = [{"Key": key, "Value": "x"} for key in tags]

    return both(made, without("termination-handler"))
