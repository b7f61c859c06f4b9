"""A node group of EKS on the twin: real instances, which follow its size."""

from typing import Any

import pytest

pytestmark = pytest.mark.integration


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
