"""infra.tags and infra.eks.cluster: what others know our resources by."""

from __future__ import annotations

import json

from infra.eks.cluster import kubeconfig
from infra.tags import Tags, group_tags


def test_the_users_tags_are_kept_but_never_hide_ours() -> None:
    tags = Tags(
        cluster="orders", environment="prod", extra={"team": "x", "stillwater:cluster": "mine"}
    )
    assert tags.everywhere["team"] == "x"
    assert tags.everywhere["stillwater:cluster"] == "orders"


def test_group_tags_say_which_of_them_instances_inherit() -> None:
    tags = group_tags({"a": "1"}, {"b": "2"})
    assert [(t.key, t.value, t.propagate_at_launch) for t in tags] == [
        ("a", "1", True),
        ("b", "2", False),
    ]


def test_the_kubeconfig_holds_no_secret_and_never_changes() -> None:
    config = kubeconfig("orders", "us-east-1", "https://eks.example", "Y2E=")
    assert config == kubeconfig("orders", "us-east-1", "https://eks.example", "Y2E=")
    (user,) = json.loads(config)["users"]
    assert set(user["user"]) == {"exec"}
    assert user["user"]["exec"]["command"] == "aws"
    assert "orders" in user["user"]["exec"]["args"]
