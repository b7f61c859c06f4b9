"""The functions as they are deployed: a message nobody can use, and who they are."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.credentials import ReadOnlyCredentials

from core.ground.fields import digest
from core.ground.naming import NODE_POOL_LABEL
from handlers.adapters.eks import eks_token
from infra.functions import packaging
from local import environment
from local.demo import spec as demo_spec
from local.kubernetes.client import Api, ApiError
from tests.integration.cluster import BROKERS, Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
# Runs in a fresh interpreter: the zip first on the path, what a Lambda lacks made unimportable.
PROBE = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("pydantic", "pulumi", "pyspark", "yaml", "kubernetes", "core.cluster"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
sys.path.insert(0, sys.argv[1])
for name in ("interruption", "tick", "sweep"):
    module = importlib.import_module(f"handlers.{name}")
    assert module.__file__.startswith(sys.argv[1]), module.__file__
    assert callable(module.handler)
for name in ("aws_lambda_powertools", "kafka", "urllib3", "jmespath", "core"):
    module = importlib.import_module(name)
    assert module.__file__.startswith(sys.argv[1]), module.__file__
"""


def ignored(cluster: Cluster, body: str) -> dict[str, Any] | None:
    """Return the ledger's record of an ignored message."""
    pages = cluster.twin.aws("dynamodb").get_paginator("scan")
    for page in pages.paginate(TableName=cluster.outputs["ledger_table"]):
        for item in page["Items"]:
            if item["pk"]["S"].startswith("ignored#") and item["body"]["S"] == body:
                return dict(item)
    return None


def test_a_test_notification_ends_in_the_ledger_with_its_body(cluster: Cluster) -> None:
    body = json.dumps(
        {
            "AccountId": environment.ACCOUNT,
            "RequestId": str(uuid4()),
            "AutoScalingGroupARN": "arn:aws:autoscaling:us-east-1:123456789012:group",
            "AutoScalingGroupName": "local-harbour-broker-a",
            "Service": "AWS Auto Scaling",
            "Event": "autoscaling:TEST_NOTIFICATION",
            "Time": "2026-11-20T00:00:00.000Z",
        }
    )
    cluster.twin.aws("sqs").send_message(
        QueueUrl=cluster.outputs["events_queue_url"], MessageBody=body
    )
    item = cluster.until(lambda: ignored(cluster, body), "the ledger has it")
    assert item["pk"]["S"] == f"ignored#{digest(item['outcome']['S'] + body)}"
    assert "test" in item["outcome"]["S"].lower()


def credentials_of(cluster: Cluster, function: str) -> ReadOnlyCredentials:
    """Assume a function's own role, as Lambda does."""
    name = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}-{function}"
    found = cluster.twin.aws("lambda").get_function_configuration(FunctionName=name)
    assumed = cluster.twin.aws("sts").assume_role(RoleArn=found["Role"], RoleSessionName=name)
    keys = assumed["Credentials"]
    return ReadOnlyCredentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])


def kubernetes_as(cluster: Cluster, function: str) -> Api:
    """Return the API server as a function's role meets it: with an EKS token, nothing else."""
    eks = str(cluster.outputs["eks_cluster_name"])
    session = boto3.Session(*credentials_of(cluster, function)[:3])
    bearer = eks_token(eks, environment.REGION, session)
    ca = base64.b64decode(cluster.outputs["eks_ca"]).decode()
    return Api(str(cluster.outputs["eks_endpoint"]), bearer, ca_pem=ca)


def test_the_ticks_role_may_list_nodes_and_pods_and_delete_none(cluster: Cluster) -> None:
    api = kubernetes_as(cluster, "tick")
    pod = cluster.pods()[min(BROKERS)]["metadata"]
    path = f"/api/v1/namespaces/{pod['namespace']}/pods"
    pools = {
        n["metadata"]["labels"].get(NODE_POOL_LABEL) for n in api.get("/api/v1/nodes")["items"]
    }
    assert {"broker", "controller"} <= pools
    listed = {item["metadata"]["name"] for item in api.get(path)["items"]}
    assert pod["name"] in listed
    with pytest.raises(ApiError, match='cannot delete resource "pods"') as refusal:
        api.delete(f"{path}/{pod['name']}")
    assert refusal.value.status == 403
    with pytest.raises(ApiError) as refusal:
        api.get("/api/v1/namespaces/kube-system/secrets")
    assert refusal.value.status == 403


def test_the_sweeps_role_may_list_nodes_and_nothing_else(cluster: Cluster) -> None:
    api = kubernetes_as(cluster, "sweep")
    assert api.get("/api/v1/nodes")["items"]
    for path in ("/api/v1/pods", "/apis/storage.k8s.io/v1/volumeattachments"):
        with pytest.raises(ApiError) as refusal:
            api.get(path)
        assert refusal.value.status == 403


def test_a_function_that_has_no_business_there_is_unknown_to_kubernetes(cluster: Cluster) -> None:
    with pytest.raises(ApiError) as refusal:
        kubernetes_as(cluster, "interruption").get("/api/v1/nodes")
    assert refusal.value.status == 401


def test_every_handler_imports_from_the_zip_alone(tmp_path: Path) -> None:
    # -I: neither the working directory nor PYTHONPATH; boto3 comes with the Lambda runtime.
    ran = subprocess.run(
        [sys.executable, "-I", "-c", PROBE, str(packaging.build(tmp_path).path)],
        capture_output=True,
        text=True,
        check=False,
        env={"AWS_DEFAULT_REGION": "us-east-1", "PATH": ""},
    )
    assert ran.returncode == 0, ran.stderr
