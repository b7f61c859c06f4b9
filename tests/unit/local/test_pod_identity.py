"""A pod acts under the role of its association, and under nobody's where that role refuses it."""

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError

from local.kubernetes import identity
from local.place import Place
from local.store import ResourceStore

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
    monkeypatch.setattr(identity, "client", lambda *_: FakeAws(actions))
    place = Place(11, tmp_path)
    ResourceStore(place.path("store")).put(TYPE, "a-1", ASSOCIATION)
    given = identity.pod_credentials(place, "test-orders", "kube-system", "nth")
    assert given.get("AWS_ACCESS_KEY_ID") == key


def test_a_pod_without_an_association_has_no_keys(tmp_path: Path) -> None:
    place = Place(11, tmp_path)
    assert identity.pod_credentials(place, "test-orders", "kube-system", "nth") == {}


class WithoutAssociations:
    """EKS with no cluster, or with one; associations are the store's."""

    def __init__(self, *clusters: str) -> None:
        self._clusters = list(clusters)

    def list_clusters(self) -> dict[str, Any]:
        return {"clusters": self._clusters}

    def describe_volumes(self) -> str:
        return "volumes"


def test_the_driver_is_the_twins_own_hand_only_where_there_is_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "client", lambda *_: WithoutAssociations())
    assert identity.AsDriver(Place(11, tmp_path)).describe_volumes() == "volumes"
    monkeypatch.setattr(identity, "client", lambda *_: WithoutAssociations("test-orders"))
    with pytest.raises(NoCredentialsError):
        identity.AsDriver(Place(11, tmp_path)).describe_volumes()
