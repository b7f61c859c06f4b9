"""Who a key belongs to, and what an EKS cluster says."""

import http.client
import json
from typing import Any

import pytest

from local.place import Place
from tests.integration.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.integration


def look_up(place: Place, access_key_id: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(
        place.host("moto"), place.port("moto"), timeout=PATIENCE_SECONDS
    )
    connection.request("GET", f"/stillwater/credentials/{access_key_id}")
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_an_assumed_roles_key_leads_to_its_secret_and_its_arn(cloud: Any) -> None:
    role = cloud.role(cloud.name("role"))
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
    cloud.later(cloud.eks.delete_cluster, name=name)
    assert cluster["endpoint"] == cloud.place.url("apiserver", "https")
    group = cloud.eks.create_nodegroup(
        clusterName=name,
        nodegroupName="system",
        nodeRole=role,
        subnets=subnets,
        scalingConfig={"minSize": 2, "maxSize": 3, "desiredSize": 2},
        instanceTypes=["m6i.large"],
        labels={"tier": "system"},
    )["nodegroup"]
    cloud.later(cloud.eks.delete_nodegroup, clusterName=name, nodegroupName="system")
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
