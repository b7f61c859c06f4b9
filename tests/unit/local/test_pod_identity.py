"""A pod acts under the role of its association, and under nobody's where that role refuses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local.kubernetes import identity
from local.place import Place
from local.pulumi.aws_store import Store

ROLE = "arn:aws:iam::123456789012:role/test-orders-nth"
TYPE = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
ASSOCIATION = {
    "clusterName": "test-orders",
    "namespace": "kube-system",
    "serviceAccount": "nth",
    "roleArn": ROLE,
}
ISSUED = {"AccessKeyId": "ASIA", "SecretAccessKey": "s", "SessionToken": "t"}


class FakeAws:
    """IAM with one role, and STS that gives a session of it."""

    def __init__(self, actions: list[str]) -> None:
        self._actions = actions

    def get_role(self, RoleName: str) -> dict[str, Any]:  # noqa: N803 - boto3's name
        assert RoleName == "test-orders-nth"
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": self._actions,
        }
        return {"Role": {"AssumeRolePolicyDocument": {"Statement": [statement]}}}

    def assume_role(self, **_: str) -> dict[str, Any]:
        return {"Credentials": ISSUED}


@pytest.mark.parametrize(
    ("actions", "key"),
    [(["sts:AssumeRole", "sts:TagSession"], "ASIA"), (["sts:AssumeRole"], None)],
    ids=["its trust lets Pod Identity in", "its trust lets it tag no session"],
)
def test_a_pod_has_its_associations_role_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, actions: list[str], key: str | None
) -> None:
    monkeypatch.setenv("STILLWATER_IAM", "on")
    monkeypatch.setattr(identity, "client", lambda *_: FakeAws(actions))
    place = Place(11, tmp_path)
    Store(place.path("store")).put(TYPE, "a-1", ASSOCIATION)
    given = identity.pod_credentials(place, "test-orders", "kube-system", "nth")
    assert given.get("AWS_ACCESS_KEY_ID") == key
