"""infra.eks.cluster: the API server is asked as whoever the AWS provider works as."""

from __future__ import annotations

import json
from typing import Any

from infra.eks.cluster import kubeconfig


def login(profile: str | None) -> dict[str, Any]:
    config = json.loads(kubeconfig("test-orders", "us-east-1", "https://eks", "Y2E=", profile))
    (user,) = config["users"]
    return dict(user["user"]["exec"])


def test_a_token_is_asked_for_each_time_and_none_is_kept() -> None:
    assert login(None)["args"][:4] == ["eks", "get-token", "--cluster-name", "test-orders"]
    assert "env" not in login(None)


def test_the_stacks_profile_reaches_the_cluster_too() -> None:
    assert login("team")["env"] == [{"name": "AWS_PROFILE", "value": "team"}]
