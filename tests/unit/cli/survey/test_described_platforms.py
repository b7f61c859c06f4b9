"""What must change first, before a cluster that exists is taken over, stands in its description."""

from __future__ import annotations

import pytest

from cli.survey import command, draft
from tests.unit.cli.survey.around import CLUSTER
from tests.unit.cli.survey.others import own
from tests.unit.cli.survey.platforms import Change


def known_by(mode: str | None) -> Change:
    said = {} if mode is None else {"accessConfig": {"authenticationMode": mode}}
    return lambda world: world.around.cluster.update(said)


def strimzi(version: str) -> Change:
    return lambda world: world.versions.update({"core.strimzi.io": version})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (known_by("CONFIG_MAP"), "authenticationMode=API_AND_CONFIG_MAP"),
        (known_by("API_AND_CONFIG_MAP"), ""),
        (known_by("API"), ""),
        (known_by(None), ""),
        (strimzi("v1beta2"), "upgrade Strimzi to 0.49"),
        (strimzi("v1"), ""),
    ],
    ids=["aws-auth alone", "both", "access entries", "unsaid", "Strimzi 0.45", "Strimzi 1.2"],
)
def test_what_the_functions_will_need_is_said_before_they_are_made(
    change: Change, words: str
) -> None:
    world = own()
    change(world)
    text = draft.draft(command.read(world, world.client, None, CLUSTER), CLUSTER)
    told = ("API_AND_CONFIG_MAP", "upgrade Strimzi")
    assert any(each in text for each in told) == bool(words)
    assert words in text
