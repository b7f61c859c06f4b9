"""The Kubernetes provider under the real engine, on a real API server, with real helm."""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from pulumi import automation

from core.ground.errors import StillwaterError
from local.kubernetes import control_plane
from local.kubernetes.client import find
from local.pulumi.kubernetes_login import PATIENCE_SECONDS, Login, read_kubeconfig
from tests.integration.waiting import until

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = pytest.mark.integration
PROGRAMS = Path(__file__).parent / "programs"
API = "/apis/test.stillwater.dev/v1"


def _kubeconfig(plane: Plane) -> str:
    """Return a kubeconfig as infra writes it for EKS: a server, its CA, and `aws eks get-token`."""
    authority = base64.b64encode(control_plane.ca_file(plane.place).read_bytes()).decode()
    server = plane.place.url("apiserver", "https")
    arguments = ["eks", "get-token", "--cluster-name", plane.cluster]
    user = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": [*arguments, "--region", "us-east-1", "--output", "json"],
    }
    eks = {"server": server, "certificate-authority-data": authority}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "eks", "cluster": eks}],
            "users": [{"name": "aws", "user": {"exec": user}}],
            "contexts": [{"name": "eks", "context": {"cluster": "eks", "user": "aws"}}],
            "current-context": "eks",
        }
    )


class Stacks:
    """Makes stacks of one twin, run as a user's `pulumi` runs them, and takes them down again."""

    def __init__(self, plane: Plane, home: Path) -> None:
        self._plane = plane
        self._home = home
        self._made: list[automation.Stack] = []

    def make(self, program: str) -> automation.Stack:
        project = self._home / program
        project.mkdir()
        shutil.copy(PROGRAMS / f"{program}.py", project / "__main__.py")
        (project / "Pulumi.yaml").write_text(f"name: {program}\nruntime: python\n")
        stack = automation.create_or_select_stack(
            stack_name=f"test-{time.monotonic_ns()}",
            work_dir=str(project),
            opts=automation.LocalWorkspaceOptions(
                env_vars=self._plane.twin.environment(),
                pulumi_command=automation.PulumiCommand(str(self._plane.place.directory)),
            ),
        )
        stack.set_config("kubeconfig", automation.ConfigValue(_kubeconfig(self._plane)))
        self._made.append(stack)
        return stack

    def close(self) -> None:
        for stack in reversed(self._made):
            stack.destroy()


@pytest.fixture
def stacks(plane: Plane, tmp_path: Path) -> Iterator[Stacks]:
    made = Stacks(plane, tmp_path)
    yield made
    made.close()


@pytest.mark.long
def test_a_refresh_notices_an_object_that_somebody_deleted(plane: Plane, stacks: Stacks) -> None:
    stack = stacks.make("space")
    stack.up()
    path = f"/api/v1/namespaces/{stack.outputs()['name'].value}"
    plane.api.delete(path)

    until(lambda: find(plane.api, path) is None, "the namespace is gone")
    assert stack.refresh().summary.resource_changes == {"same": 2, "delete": 1}
    assert stack.up().summary.resource_changes == {"same": 2, "create": 1}


@pytest.mark.long
def test_a_wait_for_a_condition_says_what_is_missing_and_ends_when_it_comes(
    plane: Plane, stacks: Stacks
) -> None:
    stack = stacks.make("tide")
    with pytest.raises(automation.CommandError, match="did not reach Ready=True within 2 s"):
        stack.up()
    ready = {"type": "Ready", "status": "True", "reason": "High", "message": ""}
    tide = {
        "apiVersion": "test.stillwater.dev/v1",
        "kind": "Tide",
        "metadata": {"name": "tide"},
        "status": {"conditions": [ready]},
    }
    path = f"{API}/namespaces/default/tides/tide/status"
    plane.api.apply(path, tide, field_manager="moon")
    assert stack.up().summary.result == "succeeded"


def test_a_preview_shows_what_the_api_server_would_refuse(plane: Plane, stacks: Stacks) -> None:
    with pytest.raises(automation.CommandError, match="must be between 1 and 65535"):
        stacks.make("wrong_port").preview()


def test_an_identity_that_the_cluster_does_not_know_is_told_so(plane: Plane) -> None:
    iam, name = plane.aws("iam"), f"stranger-{time.monotonic_ns()}"
    iam.create_user(UserName=name)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    stranger = boto3.Session(key["AccessKeyId"], key["SecretAccessKey"])
    login = Login(read_kubeconfig(_kubeconfig(plane)), stranger)
    asked_at = time.monotonic()
    with pytest.raises(
        StillwaterError, match=f"does not accept the AWS access key {key['AccessKeyId']}"
    ):
        login.api.get("/api/v1/namespaces")
    assert time.monotonic() - asked_at < PATIENCE_SECONDS  # that is for a server that is silent
    iam.delete_access_key(UserName=name, AccessKeyId=key["AccessKeyId"])
    iam.delete_user(UserName=name)
