"""What a survey describes of a cluster, and the same at a level, filled in as a person would."""

import yaml

from cli.survey import command, draft
from tests.unit.cli.survey.manifests import Item
from tests.unit.cli.survey.worlds import World

ARN = "arn:aws:eks:eu-north-1:111122223333:cluster/shop"
# What a survey cannot know, as somebody fills it in.
FILLED = {
    "subnets": ["subnet-0123456789abcdef0"],
    "security_groups": ["sg-0123456789abcdef0"],
    "pool_label": "pool",
}
GATE = {"image": "111122223333.dkr.ecr.eu-north-1.amazonaws.com/gate:1.4"}


def described(world: World, context: str = ARN) -> tuple[Item, str]:
    text = draft.draft(command.read(world, world.client, None), context)
    return yaml.safe_load(text)["adopt"], text


def at(level: str, section: Item) -> Item:
    """Return a description at a level, with what the plan asks for filled in."""
    kafkas = [{"bootstrap": "kafka.example.com:9094", **each} for each in section["kafkas"]]
    for each in kafkas:
        if each.get("authentication"):
            each["credentials_secret"] = "eyes"
    gated = {"eviction_gate": GATE} if level in {"gate", "act"} else {}
    return {"adopt": {**section, **FILLED, **gated, "level": level, "kafkas": kafkas}}
