"""EKS tokens, judged by the real aws-iam-authenticator with the twin's STS and accounts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.credentials import ReadOnlyCredentials

from local.kubernetes.client import ApiError
from local.pulumi import aws_eks
from tests.integration.waiting import until

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = pytest.mark.integration
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})


@pytest.fixture
def role(plane: Plane) -> Iterator[tuple[str, ReadOnlyCredentials]]:
    """A role of its own for each test, and a session of it."""
    name = f"function-{time.monotonic_ns()}"
    arn = plane.aws("iam").create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    assumed = plane.aws("sts").assume_role(RoleArn=arn, RoleSessionName="tick")["Credentials"]
    yield (
        arn,
        ReadOnlyCredentials(
            assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"]
        ),
    )
    plane.aws("iam").delete_role(RoleName=name)


@pytest.fixture
def entry(plane: Plane, role: tuple[str, ReadOnlyCredentials]) -> Iterator[None]:
    """Gives the role an access entry, as the twin's provider does, and takes it back."""
    arn = role[0]
    aws_eks.put_entry(
        plane.place, aws_eks.entry_row(arn, "STANDARD", ["stillwater:guests"], "tick")
    )
    yield
    aws_eks.remove_entry(plane.place, arn)


def test_the_creator_of_the_cluster_is_its_administrator(plane: Plane) -> None:
    user = plane.user(plane.admin)
    assert isinstance(user, dict)
    assert (user["username"], "system:masters" in user["groups"]) == ("kubernetes-admin", True)


def test_a_role_without_an_access_entry_is_refused(plane: Plane, role: Any) -> None:
    assert plane.user(role[1]) == 401


def test_a_role_with_an_access_entry_is_in_its_groups_and_has_their_rights_only(
    plane: Plane, role: Any, entry: None
) -> None:
    credentials = role[1]

    def groups() -> set[str]:
        # The mapping is watched, so it takes a moment.
        user = plane.user(credentials)
        return set() if isinstance(user, int) else set(user["groups"])

    until(lambda: "stillwater:guests" in groups(), "the role has its groups")
    assert groups() == {"stillwater:guests", "system:authenticated"}
    with pytest.raises(ApiError) as refusal:
        plane.api_as(credentials).get("/api/v1/nodes")
    assert refusal.value.status == 403
    assert 'User "tick" cannot list resource "nodes"' in str(refusal.value)


def test_a_token_for_another_cluster_is_refused(plane: Plane) -> None:
    assert plane.user(plane.admin, cluster="another") == 401


def test_the_authenticator_may_read_one_config_map_and_nothing_else(plane: Plane) -> None:
    rules = plane.api.post(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": "stillwater-authenticator",
                "resourceAttributes": {
                    "namespace": "kube-system",
                    "resource": "secrets",
                    "verb": "list",
                },
            },
        },
    )
    assert rules["status"]["allowed"] is False
