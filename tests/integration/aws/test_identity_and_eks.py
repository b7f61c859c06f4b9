"""Who a key belongs to, what an EKS cluster says, and that the server takes its children along."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

import pytest

from local.place import Place
from local.processes import start_time_ticks

pytestmark = pytest.mark.integration


def look_up(place: Place, access_key_id: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(place.host("moto"), place.port("moto"), timeout=5)
    connection.request("GET", f"/stillwater/credentials/{access_key_id}")
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_an_assumed_roles_key_leads_to_its_secret_and_its_arn(cloud: Any) -> None:
    role = cloud.iam.create_role(
        RoleName=cloud.name("role"), AssumeRolePolicyDocument=json.dumps({"Statement": []})
    )["Role"]
    keys = cloud.sts.assume_role(RoleArn=role["Arn"], RoleSessionName="tick")["Credentials"]
    status, found = look_up(cloud.place, keys["AccessKeyId"])
    assert status == 200
    assert found["secret"] == keys["SecretAccessKey"]
    assert found["session_token"] == keys["SessionToken"]
    assert found["arn"] == f"arn:aws:sts::123456789012:assumed-role/{role['RoleName']}/tick"
    assert found["user_id"] == f"{role['RoleId']}:tick"


def test_an_unknown_key_is_not_found(cloud: Any) -> None:
    assert look_up(cloud.place, "AKIAUNKNOWN")[0] == 404


def test_managed_policies_exist(cloud: Any) -> None:
    found = cloud.iam.get_policy(PolicyArn="arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy")
    assert found["Policy"]["PolicyName"] == "AmazonEKSWorkerNodePolicy"


def test_a_node_group_is_real_instances_with_the_tags_of_eks(cloud: Any) -> None:
    name = cloud.name("cluster")
    subnets = cloud.network("abc")
    role = "arn:aws:iam::123456789012:role/nodes"
    cluster = cloud.eks.create_cluster(
        name=name, roleArn=role, resourcesVpcConfig={"subnetIds": subnets}
    )["cluster"]
    assert cluster["endpoint"] == "https://127.0.0.1:6443"
    group = cloud.eks.create_nodegroup(
        clusterName=name,
        nodegroupName="system",
        nodeRole=role,
        subnets=subnets,
        scalingConfig={"minSize": 2, "maxSize": 3, "desiredSize": 2},
        instanceTypes=["m6i.large"],
        labels={"tier": "system"},
    )["nodegroup"]
    scaling = group["resources"]["autoScalingGroups"][0]["name"]
    cloud.eventually(lambda: list(cloud.members(scaling).values()) == ["InService"] * 2)
    found = [
        instance
        for reservation in cloud.ec2.describe_instances(
            Filters=[{"Name": f"tag:kubernetes.io/cluster/{name}", "Values": ["owned"]}]
        )["Reservations"]
        for instance in reservation["Instances"]
    ]
    assert len({instance["SubnetId"] for instance in found}) == 2
    assert {instance["InstanceType"] for instance in found} == {"m6i.large"}
    tags = {tag["Key"]: tag["Value"] for tag in found[0]["Tags"]}
    assert (tags["eks:nodegroup-name"], tags["eks:cluster-name"]) == ("system", name)
    cloud.eks.update_nodegroup_config(
        clusterName=name,
        nodegroupName="system",
        scalingConfig={"minSize": 1, "maxSize": 3, "desiredSize": 3},
    )
    cloud.eventually(lambda: list(cloud.members(scaling).values()) == ["InService"] * 3)
    cloud.eks.delete_nodegroup(clusterName=name, nodegroupName="system")
    cloud.eventually(lambda: not cloud.members(scaling))


def test_sigterm_ends_the_server_and_its_functions_within_five_seconds(own_cloud: Any) -> None:
    function = own_cloud.function(
        "import os\ndef handler(event, context):\n    return os.getpid()\n"
    )
    child, _ = own_cloud.invoke(function)
    assert own_cloud.place.path("pids", str(child)).exists()
    server = own_cloud.server.popen
    started = time.monotonic()
    server.terminate()
    assert server.wait(5) == 0
    own_cloud.eventually(lambda: start_time_ticks(child) is None, within_seconds=2)
    assert time.monotonic() - started < 5
