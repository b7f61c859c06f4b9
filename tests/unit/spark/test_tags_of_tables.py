"""Tables say by which tags they were made, and a report of them by no other."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row

from spark import schemas
from spark.jobs.chosen_month import other_tags
from spark.months import made_by
from spark.tag_keys import OURS, KafkaTags
from tests.unit.spark import month

TEAM = KafkaTags("team", "streaming", "kafka-pool")


def note(tags: tuple[str, str] | None) -> Row:
    cluster, pool = tags or (None, None)
    return month.row(schemas.DELIVERIES, cluster_tag=cluster, pool_tag=pool)


@pytest.mark.parametrize(
    ("made", "asked", "said"),
    [
        (TEAM.asked, TEAM, False),
        (TEAM.asked, OURS, False),
        (None, TEAM, False),
        (OURS.asked, TEAM, True),
    ],
    ids=["as asked", "nothing asked", "not noted", "other tags"],
)
def test_other_tags_than_are_asked_for_are_said(made: Any, asked: KafkaTags, *, said: bool) -> None:
    told = other_tags(note(made), asked)
    assert bool(told) is said
    assert made_by(note(made)) == made
    if said:
        (sentence,) = told
        assert "made by the tags stillwater:cluster and, of pools, stillwater:pool" in sentence
        assert "by team = streaming and, of pools, kafka-pool they have" in sentence
