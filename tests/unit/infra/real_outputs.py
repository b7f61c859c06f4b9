"""Ids, ARNs and outputs in the form and of the length that AWS gives them.

Most tests read a program more easily with ids that say whose they are; what measures a program
needs them as long as they will be.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

ACCOUNT = "123456789012"
REGION = "us-east-1"
HEX_ID = 17
# The certificate of an EKS cluster, a PEM of 1,107 bytes, in base64.
REAL_CA = base64.b64encode(
    b"-----BEGIN CERTIFICATE-----\n" + 1050 * b"A" + b"\n-----END-----"
).decode()
REAL_CA = REAL_CA.ljust(1476, "A")
REAL_ENDPOINT = f"https://{'0123456789ABCDEF' * 2}.gr7.{REGION}.eks.amazonaws.com"
# The prefix of ids that end in 17 hexadecimal characters.
IDS = {
    "ec2/eip:Eip": "eipalloc",
    "ec2/internetGateway:InternetGateway": "igw",
    "ec2/launchTemplate:LaunchTemplate": "lt",
    "ec2/natGateway:NatGateway": "nat",
    "ec2/routeTable:RouteTable": "rtb",
    "ec2/securityGroup:SecurityGroup": "sg",
    "ec2/subnet:Subnet": "subnet",
    "ec2/vpc:Vpc": "vpc",
    "ec2/vpcEndpoint:VpcEndpoint": "vpce",
    "ec2/vpcEndpointService:VpcEndpointService": "vpce-svc",
}
# {} is the resource's own name, {hex} 16 hexadecimal characters, {uuid} a UUID.
ARNS = {
    "autoscaling/group:Group": (
        "arn:aws:autoscaling:{region}:{account}:autoScalingGroup:{uuid}:autoScalingGroupName/{name}"
    ),
    "cloudwatch/eventRule:EventRule": "arn:aws:events:{region}:{account}:rule/{name}",
    "cloudwatch/logGroup:LogGroup": "arn:aws:logs:{region}:{account}:log-group:{name}",
    "cloudwatch/metricAlarm:MetricAlarm": "arn:aws:cloudwatch:{region}:{account}:alarm:{name}",
    "dynamodb/table:Table": "arn:aws:dynamodb:{region}:{account}:table/{name}",
    "eks/cluster:Cluster": "arn:aws:eks:{region}:{account}:cluster/{name}",
    "emrserverless/application:Application": (
        "arn:aws:emr-serverless:{region}:{account}:/applications/{hex}"
    ),
    "iam/instanceProfile:InstanceProfile": "arn:aws:iam::{account}:instance-profile/{name}",
    "iam/policy:Policy": "arn:aws:iam::{account}:policy/{name}",
    "iam/role:Role": "arn:aws:iam::{account}:role/{name}",
    "kms/key:Key": "arn:aws:kms:{region}:{account}:key/{uuid}",
    "lambda/function:Function": "arn:aws:lambda:{region}:{account}:function:{name}",
    "lb/listener:Listener": (
        "arn:aws:elasticloadbalancing:{region}:{account}:listener/net/{name}/{hex}/{hex}"
    ),
    "lb/loadBalancer:LoadBalancer": (
        "arn:aws:elasticloadbalancing:{region}:{account}:loadbalancer/net/{name}/{hex}"
    ),
    "lb/targetGroup:TargetGroup": (
        "arn:aws:elasticloadbalancing:{region}:{account}:targetgroup/{name}/{hex}"
    ),
    "s3/bucket:Bucket": "arn:aws:s3:::{name}",
    "secretsmanager/secret:Secret": (
        "arn:aws:secretsmanager:{region}:{account}:secret:{name}-AbCdEf"
    ),
    "sns/topic:Topic": "arn:aws:sns:{region}:{account}:{name}",
    "sqs/queue:Queue": "arn:aws:sqs:{region}:{account}:{name}",
}
# Types whose id is their ARN.
KNOWN_BY_ARN = frozenset(
    {
        "lb/listener:Listener", "lb/loadBalancer:LoadBalancer", "lb/targetGroup:TargetGroup",
        "secretsmanager/secret:Secret", "sns/topic:Topic",
    }
)  # fmt: skip
# A hosted zone's id is letters and digits after a Z.
ZONE_ID = "Z0123456789ABCDEFGHIJ"
KNOWN_BY_NAME = frozenset(
    {
        "autoscaling/group:Group", "cloudwatch/eventRule:EventRule", "dynamodb/table:Table",
        "eks/cluster:Cluster", "iam/instanceProfile:InstanceProfile", "iam/role:Role",
        "lambda/function:Function", "s3/bucket:Bucket",
    }
)  # fmt: skip


def real(type_: str, name: str, inputs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a resource's id and outputs as AWS would give them."""
    token = type_.split(":", 1)[1]
    own = str(inputs.get("name") or inputs.get("bucket") or name)
    digest = hashlib.sha256(f"{type_}{name}".encode()).hexdigest()
    uuid = "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))
    outputs: dict[str, Any] = {"name": own}
    identity = uuid
    if token in ARNS:
        form = ARNS[token]
        outputs["arn"] = form.format(
            name=own, region=REGION, account=ACCOUNT, uuid=uuid, hex=digest[:16]
        )
    if token in IDS:
        identity = f"{IDS[token]}-{digest[:HEX_ID]}"
    elif token in KNOWN_BY_ARN:
        identity = str(outputs["arn"])
    elif token in KNOWN_BY_NAME:
        identity = own
    elif token == "route53/zone:Zone":
        identity = ZONE_ID
    return identity, {**outputs, **_special(token, own, uuid, inputs)}


def _special(token: str, own: str, uuid: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    special: dict[str, dict[str, Any]] = {
        "sqs/queue:Queue": {"url": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{own}"},
        "lambda/functionUrl:FunctionUrl": {
            "functionUrl": f"https://{'a' * 32}.lambda-url.{REGION}.on.aws/"
        },
        "ec2/launchTemplate:LaunchTemplate": {"latestVersion": 1},
        "kms/key:Key": {"keyId": uuid},
        "lb/loadBalancer:LoadBalancer": {
            "dnsName": f"{own}-0123456789abcdef.elb.{REGION}.amazonaws.com",
            "zoneId": "Z26RNL4JYFTOTI",
        },
        "route53/zone:Zone": {"zoneId": ZONE_ID},
        "eks/cluster:Cluster": {
            "endpoint": REAL_ENDPOINT,
            "certificateAuthority": {"data": REAL_CA},
            "vpcConfig": {
                **(inputs.get("vpcConfig") or {}),
                "clusterSecurityGroupId": "sg-0123456789abcdef0",
            },
        },
    }
    return special.get(token, {})
