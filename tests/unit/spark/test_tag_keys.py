"""Tag keys: one tag, as many spellings as AWS has exports."""

from __future__ import annotations

import pytest

from core.ground.naming import CLUSTER_TAG, POOL_TAG
from spark.tag_keys import export_key, spellings, tag_columns


@pytest.mark.parametrize(
    ("key", "spelled"),
    [
        ("stillwater:pool", "user_stillwater_pool"),
        ("kubernetes.io/created-for/pvc/name", "user_kubernetes_io_created_for_pvc_name"),
        ("Name", "user_name"),
        ("aws:autoscaling:groupName", "aws_autoscaling_group_name"),
        ("aws:eks:cluster-name", "aws_eks_cluster_name"),
    ],
)
def test_cur_2_spells_a_key_in_lower_snake(key: str, spelled: str) -> None:
    assert export_key(key) == spelled


def test_a_key_is_looked_for_under_every_spelling_of_every_export() -> None:
    assert spellings("team") == (
        "user_team",
        "user:team",
        "team",
        "resourceTags/user:team",
        "resourceTags/team",
        "costCategory/team",
        "accountTag/team",
    )
    # Nobody gives these to a category: every line is asked for each spelling of them.
    assert not any("/" in each.removeprefix("resourceTags/") for each in spellings(POOL_TAG))
    assert "user_\N{LATIN SMALL LETTER E WITH ACUTE}quipe" in spellings(
        "\N{LATIN SMALL LETTER E WITH ACUTE}quipe"
    )


def test_a_column_may_be_called_by_the_words_of_a_tags_key_alone() -> None:
    known = {"user_team", "team", "stillwater_cluster", "product", "resource_tags_user_product"}
    assert tag_columns("team", known) == ["user_team", "team"]
    assert tag_columns(CLUSTER_TAG, known) == ["stillwater_cluster"]
    # A report has a column of its own that is called so.
    assert tag_columns("product", known) == ["resource_tags_user_product"]
    assert tag_columns("line-item:operation", {"line_item_operation"}) == []
