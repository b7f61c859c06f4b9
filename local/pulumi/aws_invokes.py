"""The functions of pulumi-aws a program may ask: who, where, which image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.ground.errors import StillwaterError
from local.environment import PARTITION
from local.pulumi.aws_adapter import Aws
from local.values import Properties

EKS_IMAGE_PREFIX = "/aws/service/eks/optimized-ami/"


def _caller(aws: Aws, _arguments: Properties) -> Properties:
    who = aws.client("sts").get_caller_identity()
    account = who["Account"]
    return {"accountId": account, "arn": who["Arn"], "userId": who["UserId"], "id": account}


def _partition(_aws: Aws, _arguments: Properties) -> Properties:
    return {
        "partition": PARTITION,
        "id": PARTITION,
        "dnsSuffix": "amazonaws.com",
        "reverseDnsPrefix": "com.amazonaws",
    }


def _region(aws: Aws, _arguments: Properties) -> Properties:
    return {
        "region": aws.region,
        "name": aws.region,
        "id": aws.region,
        "endpoint": f"ec2.{aws.region}.amazonaws.com",
    }


def _vpc(aws: Aws, arguments: Properties) -> Properties:
    ec2, vpc = aws.client("ec2"), arguments["id"]
    found = ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]

    def enabled(name: str) -> bool:
        answer = ec2.describe_vpc_attribute(VpcId=vpc, Attribute=name)
        return bool(answer[name[0].upper() + name[1:]]["Value"])

    return {
        "id": vpc,
        "arn": aws.arn("ec2", f"vpc/{vpc}"),
        "cidrBlock": found["CidrBlock"],
        "enableDnsHostnames": enabled("enableDnsHostnames"),
        "enableDnsSupport": enabled("enableDnsSupport"),
    }


def _subnet(aws: Aws, arguments: Properties) -> Properties:
    subnet = arguments["id"]
    found = aws.client("ec2").describe_subnets(SubnetIds=[subnet])["Subnets"][0]
    return {
        "id": subnet,
        "arn": found["SubnetArn"],
        "vpcId": found["VpcId"],
        "availabilityZone": found["AvailabilityZone"],
        "cidrBlock": found["CidrBlock"],
    }


def node_image(aws: Aws, architecture: str) -> str:
    """Return an image of moto's for a node of an architecture.

    moto has no image of EKS; any Linux one serves, since the twin's kubelet boots nothing of it.
    """
    images: list[dict[str, Any]] = aws.client("ec2").describe_images(Owners=["amazon"])["Images"]
    fitting = sorted(
        (image["ImageId"], image.get("Name", ""))
        for image in images
        if image.get("Architecture") == architecture and image.get("Platform") != "windows"
    )
    linux = [image for image, name in fitting if name.startswith(("al20", "amzn2"))]
    found = linux or [image for image, _ in fitting]
    if not found:
        raise StillwaterError(f"The twin's AWS has no machine image for {architecture}.")
    return str(found[0])


def _parameter(aws: Aws, arguments: Properties) -> Properties:
    """Return an SSM parameter; the public ones of EKS are answered here, moto refuses them."""
    name = arguments["name"]
    if name.startswith(EKS_IMAGE_PREFIX):
        value = node_image(aws, "arm64" if "/arm64/" in name else "x86_64")
        version, kind = 1, "String"
    else:
        found = aws.client("ssm").get_parameter(
            Name=name, WithDecryption=arguments.get("withDecryption", True)
        )["Parameter"]
        value, version, kind = found["Value"], found["Version"], found["Type"]
    return {
        "id": name,
        "name": name,
        "arn": aws.arn("ssm", f"parameter{name}"),
        "type": kind,
        "value": value,
        "insecureValue": value,
        "version": version,
    }


def _random_password(aws: Aws, arguments: Properties) -> Properties:
    drawn = aws.client("secretsmanager").get_random_password(
        PasswordLength=int(arguments.get("passwordLength") or 32),
        ExcludePunctuation=bool(arguments.get("excludePunctuation")),
    )
    return {"id": aws.region, "randomPassword": drawn["RandomPassword"]}


def _eks_cluster(aws: Aws, arguments: Properties) -> Properties:
    found = aws.client("eks").describe_cluster(name=arguments["name"])["cluster"]
    return {
        "id": found["name"],
        "name": found["name"],
        "endpoint": found["endpoint"],
        "certificateAuthorities": [{"data": found["certificateAuthority"]["data"]}],
        "vpcConfig": {"subnetIds": found["resourcesVpcConfig"]["subnetIds"]},
    }


def _group(aws: Aws, arguments: Properties) -> Properties:
    name = arguments["name"]
    answer = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    if not answer["AutoScalingGroups"]:
        raise StillwaterError(f"The Auto Scaling group {name} does not exist.")
    tags = answer["AutoScalingGroups"][0]["Tags"]
    return {
        "id": name,
        "name": name,
        "tags": [
            {"key": t["Key"], "value": t["Value"], "propagateAtLaunch": t["PropagateAtLaunch"]}
            for t in tags
        ],
    }


_FUNCTIONS: dict[str, Callable[[Aws, Properties], Properties]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _caller,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:eks/getCluster:getCluster": _eks_cluster,
    "aws:autoscaling/getGroup:getGroup": _group,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:secretsmanager/getRandomPassword:getRandomPassword": _random_password,
    "aws:ssm/getParameter:getParameter": _parameter,
}


def answer(aws: Aws, token: str, arguments: Properties) -> Properties:
    """Answer one function call of the program."""
    function = _FUNCTIONS.get(token)
    if function is None:
        raise StillwaterError(
            f"The twin's AWS provider has no function {token}; it answers "
            f"{', '.join(sorted(name.rsplit(':', 1)[-1] for name in _FUNCTIONS))}."
        )
    return function(aws, arguments)
