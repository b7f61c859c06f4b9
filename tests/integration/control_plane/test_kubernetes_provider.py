"""The Kubernetes provider under the real engine, on a real API server, with real helm."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pulumi_kubernetes as k8s
import pytest
from botocore.credentials import ReadOnlyCredentials
from pulumi import automation

from local.kubernetes import control_plane
from local.kubernetes.client import ApiError
from local.pulumi import bin as engine

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = pytest.mark.integration
GROUP = "test.stillwater.dev"
NTH = "oci://public.ecr.aws/aws-ec2/helm/aws-node-termination-handler"
Program = Callable[[], None]


def _kubeconfig(plane: Plane, cluster: str | None = None) -> str:
    """Return a kubeconfig as infra writes it for EKS: a server, its CA, and `aws eks get-token`."""
    authority = base64.b64encode(control_plane.ca_file(plane.place).read_bytes()).decode()
    server = plane.place.url("apiserver", "https")
    arguments = ["eks", "get-token", "--cluster-name", cluster or plane.cluster]
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
    """Makes stacks of one twin and takes them down again."""

    def __init__(self, plane: Plane, home: Path) -> None:
        self._plane = plane
        self._home = home
        self._made: list[automation.Stack] = []

    def make(self, program: Program, credentials: ReadOnlyCredentials | None = None) -> Any:
        environment = engine.engine_environment(self._plane.place)
        if credentials is not None:
            environment["AWS_ACCESS_KEY_ID"] = credentials.access_key
            environment["AWS_SECRET_ACCESS_KEY"] = credentials.secret_key
        stack = automation.create_or_select_stack(
            stack_name=f"test-{time.monotonic_ns()}",
            project_name="provider",
            program=program,
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(self._home),
                env_vars=environment,
                pulumi_command=automation.PulumiCommand(str(self._plane.place.directory)),
            ),
        )
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


def _provider(plane: Plane, cluster: str | None = None) -> pulumi.ResourceOptions:
    provider = k8s.Provider("cluster", kubeconfig=_kubeconfig(plane, cluster))
    return pulumi.ResourceOptions(provider=provider)


def _definition(kind: str, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    plural = f"{kind.lower()}s"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        },
    }
    return k8s.apiextensions.v1.CustomResourceDefinition(
        plural,
        metadata={"name": f"{plural}.{GROUP}"},
        spec={
            "group": GROUP,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [version],
        },
        opts=opts,
    )


def _house(plane: Plane, settings: dict[str, Any]) -> Program:
    """Return a program with what the stacks use: a namespace, a custom resource, a release."""

    def program() -> None:
        opts = _provider(plane)
        space = k8s.core.v1.Namespace("house", opts=opts)
        definition = _definition("Boat", opts)
        k8s.apiextensions.CustomResource(
            "boat",
            api_version=f"{GROUP}/v1",
            kind="Boat",
            metadata={"name": "boat", "namespace": space.metadata.name},
            spec={"sails": settings["sails"]},
            opts=pulumi.ResourceOptions(provider=opts.provider, depends_on=[definition]),
        )
        k8s.storage.v1.StorageClass(
            "gp3",
            metadata={"name": "gp3-test"},
            provisioner="ebs.csi.aws.com",
            parameters=settings["parameters"],
            opts=opts,
        )
        release = k8s.helm.v3.Release(
            "nth",
            name="nth",
            namespace=space.metadata.name,
            chart=NTH,
            version="0.27.6",
            skip_await=True,  # there are no nodes here
            values={"enableSqsTerminationDraining": True, "queueURL": settings["queue"]},
            opts=opts,
        )
        pulumi.export("namespace", space.metadata.name)
        pulumi.export("status", release.status.status)
        pulumi.export("chart", release.status.chart)

    return program


def test_a_stack_goes_up_changes_nothing_twice_follows_edits_and_leaves_nothing(
    plane: Plane, stacks: Stacks
) -> None:
    settings = {"sails": 2, "parameters": {"type": "gp3"}, "queue": "https://queue.invalid/one"}
    stack = stacks.make(_house(plane, settings))
    preview = stack.preview()
    assert preview.change_summary["create"] == 7

    up = stack.up()
    assert up.summary.resource_changes == {"create": 7}
    assert up.outputs["status"].value == "deployed"
    assert up.outputs["chart"].value == "aws-node-termination-handler"
    name = up.outputs["namespace"].value
    boat = f"/apis/{GROUP}/v1/namespaces/{name}/boats/boat"
    deployment = f"/apis/apps/v1/namespaces/{name}/deployments/nth-aws-node-termination-handler"
    assert name.startswith("house-")
    assert plane.api.get(boat)["spec"] == {"sails": 2}
    assert plane.api.get(deployment)["spec"]["replicas"] == 1

    again = stack.up()
    assert again.summary.resource_changes == {"same": 7}

    settings |= {"sails": 3, "parameters": {"type": "io2"}, "queue": "https://queue.invalid/two"}
    changed = stack.up()
    assert changed.summary.resource_changes == {"same": 4, "update": 2, "replace": 1}
    assert plane.api.get(boat)["spec"] == {"sails": 3}
    assert "queue.invalid/two" in json.dumps(plane.api.get(deployment))
    storage = plane.api.get("/apis/storage.k8s.io/v1/storageclasses/gp3-test")
    assert storage["parameters"] == {"type": "io2"}

    stack.destroy()
    with pytest.raises(ApiError, match="not found"):
        plane.api.get(f"/api/v1/namespaces/{name}")
    with pytest.raises(ApiError, match="not found"):
        plane.api.get("/apis/storage.k8s.io/v1/storageclasses/gp3-test")


def test_a_wait_for_a_condition_ends_when_the_condition_comes_or_says_what_is_missing(
    plane: Plane, stacks: Stacks
) -> None:
    def program() -> None:
        opts = _provider(plane)
        definition = _definition("Tide", opts)
        k8s.apiextensions.CustomResource(
            "tide",
            api_version=f"{GROUP}/v1",
            kind="Tide",
            metadata={
                "name": "tide",
                "namespace": "default",
                "annotations": {
                    "pulumi.com/waitFor": "condition=Ready",
                    "pulumi.com/timeoutSeconds": "2",
                },
            },
            opts=pulumi.ResourceOptions(provider=opts.provider, depends_on=[definition]),
        )

    stack = stacks.make(program)
    with pytest.raises(
        automation.CommandError, match="Tide tide in namespace default did not reach"
    ):
        stack.up()
    ready = {"type": "Ready", "status": "True", "reason": "High", "message": ""}
    plane.api.apply(
        f"/apis/{GROUP}/v1/namespaces/default/tides/tide/status",
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Tide",
            "metadata": {"name": "tide"},
            "status": {"conditions": [ready]},
        },
        field_manager="moon",
    )
    assert stack.up().summary.result == "succeeded"


def test_a_preview_shows_what_the_api_server_would_refuse(plane: Plane, stacks: Stacks) -> None:
    def program() -> None:
        k8s.core.v1.Service(
            "wrong",
            metadata={"name": "wrong", "namespace": "default"},
            spec={"ports": [{"port": 99999}]},
            opts=_provider(plane),
        )

    with pytest.raises(automation.CommandError, match="must be between 1 and 65535"):
        stacks.make(program).preview()


def _namespace_of(plane: Plane, cluster: str | None = None) -> Program:
    def program() -> None:
        k8s.core.v1.Namespace("refused", opts=_provider(plane, cluster))

    return program


def test_an_identity_that_the_cluster_does_not_know_is_told_so_and_gets_no_other(
    plane: Plane, stacks: Stacks
) -> None:
    iam = plane.aws("iam")
    iam.create_user(UserName="stranger")
    key = iam.create_access_key(UserName="stranger")["AccessKey"]
    stranger = ReadOnlyCredentials(key["AccessKeyId"], key["SecretAccessKey"], None)
    stack = stacks.make(_namespace_of(plane), stranger)
    with pytest.raises(
        automation.CommandError, match="does not accept the AWS access key"
    ) as error:
        stack.up()
    assert "Traceback" not in str(error.value)
    names = {item["metadata"]["name"] for item in plane.api.get("/api/v1/namespaces")["items"]}
    assert not any(name.startswith("refused") for name in names)
