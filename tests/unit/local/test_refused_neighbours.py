"""What is each alone in order and refused beside others, a line per case."""

# ruff: noqa: E501 - a case is a line
import base64
from collections.abc import Mapping, Sequence
from typing import Any

from local.refusals import gate, neighbours
from tests.every_case import every_case
from tests.unit.local import aws_inputs as aws

EKS, LAMBDA = "InvalidParameterException", "InvalidParameterValueException"
BALANCERS, MAPPING = "lb/loadBalancer:LoadBalancer", "lambda/eventSourceMapping:EventSourceMapping"
PODS, RECORD = ("eks/podIdentityAssociation:PodIdentityAssociation", "route53/record:Record")
VPC: aws.Made = ("ec2/vpc:Vpc", "vpc-1", {"cidrBlock": "10.0.0.0/16"})
OTHER_VPC: aws.Made = ("ec2/vpc:Vpc", "vpc-2", {"cidrBlock": "10.1.0.0/16"})
WAY_OUT: aws.Made = ("ec2/internetGateway:InternetGateway", "igw-1", {"vpcId": "vpc-1"})
ZONE: aws.Made = ("route53/zone:Zone", "Z1", {"name": "orders.internal"})
NAMED = {
    "vpcId": "vpc-1",
    "serviceName": "com.amazonaws.us-east-1.sqs",
    "vpcEndpointType": "Interface",
    "privateDnsEnabled": True,
}
SCRIPT = base64.b64encode(b"#!/bin/bash\necho").decode()
AMI, AL2023 = "ami-0123456789abcdef0", "AL2023_x86_64_STANDARD"


def one(token: str, name: str = "x", /, **inputs: Any) -> aws.Made:
    return (token, name, inputs)


def subnet(number: int, vpc: str = "vpc-1", zone: str = "us-east-1a", block: str = "") -> aws.Made:
    block = block or f"10.0.{number}.0/24"
    return one(aws.SUBNET, f"subnet-{number}", vpcId=vpc, cidrBlock=block, availabilityZone=zone)


def balancer(*numbers: int) -> aws.Made:
    return one(BALANCERS, "nlb", name="nlb", subnets=[f"subnet-{n}" for n in numbers])


def listening(vpc: str) -> list[aws.Made]:
    action = {"type": "forward", "targetGroupArn": aws.GROUP_ARN}
    listener = one(
        aws.LISTENER, loadBalancerArn=aws.BALANCER_ARN, protocol="TCP", defaultActions=[action]
    )
    group = one(aws.TARGETS, name="brokers", vpcId=vpc, protocol="TCP")
    return [subnet(1), balancer(1), group, listener]


def of_two(*balancers: str) -> list[aws.Made]:
    action = {"targetGroupArn": aws.GROUP_ARN}
    return [
        one(aws.LISTENER, loadBalancerArn=each, port=1, defaultActions=[action])
        for each in balancers
    ]


def trusting(service: str, *actions: str) -> aws.Made:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": list(actions)}
    return one(aws.ROLES, name="r", assumeRolePolicy=aws.policy(statement))


def pods(*actions: str) -> list[aws.Made]:
    return [trusting("pods.eks.amazonaws.com", *actions), one(PODS, roleArn=aws.ROLE_ARN)]


def function(service: str) -> list[aws.Made]:
    return [trusting(service, "sts:AssumeRole"), one(aws.FUNCTIONS, name="f", role=aws.ROLE_ARN)]


def cluster(**inputs: Any) -> aws.Made:
    return one(aws.CLUSTER, "c", name="c", **inputs)


def nodes(**inputs: Any) -> aws.Made:
    return one(aws.NODE_GROUP, "n", clusterName="c", **inputs)


def launched(template: Mapping[str, Any], **group: Any) -> list[aws.Made]:
    return [one(aws.TEMPLATE, "lt-1", **template), nodes(launchTemplate={"id": "lt-1"}, **group)]


def proxy(version: str) -> list[aws.Made]:
    told = {"clusterName": "c", "addonName": "kube-proxy", "addonVersion": version}
    return [cluster(version="1.35"), (aws.ADDON, "a", told)]


def nat(number: int, place: int) -> aws.Made:
    return one(
        "ec2/natGateway:NatGateway",
        f"nat-{number}",
        subnetId=f"subnet-{place}",
        allocationId=f"eipalloc-{number}",
    )


def everybody(operator: str = "", **condition: str) -> aws.Made:
    told = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}
    keys = {key.replace("_", ":"): value for key, value in condition.items()}
    told = {**told, "Resource": "arn:aws:s3:::b/*", "Condition": {operator: keys} if keys else None}
    return (aws.BUCKET_POLICY, "p", {"bucket": "b", "policy": aws.policy(told)})


def block(kept: bool) -> aws.Made:
    return one(
        "s3/bucketPublicAccessBlock:BucketPublicAccessBlock", bucket="b", blockPublicPolicy=kept
    )


def inline(characters: int) -> list[aws.Made]:
    return [one(aws.INLINE, each, role="r", policy="x" * characters) for each in "ab"]


def feeding(seconds: int) -> list[aws.Made]:
    queue = one(aws.QUEUES, name="q", visibilityTimeoutSeconds=seconds)
    return [
        queue,
        one(aws.FUNCTIONS, name="f", timeout=60),
        one(MAPPING, eventSourceArn=aws.QUEUE, functionName="f"),
    ]


def rule(name: str, **changed: Any) -> aws.Made:
    return (aws.INGRESS, name, {**aws.RULE, **changed})


def record(name: str) -> aws.Made:
    return one(RECORD, name, zoneId="Z1", name=name, type="A")


def abroad(token: str, **inputs: Any) -> list[aws.Made]:
    return [subnet(1), subnet(2, zone="us-east-1b"), one(token, **inputs)]


IN_TWO = [subnet(1), subnet(2, zone="us-east-1b"), subnet(3, "vpc-2", "us-east-1b", "10.1.0.0/24")]
OF_ONE = {"vpcConfig": {"subnetIds": ["subnet-1", "subnet-2"]}}
# What is refused, with its code, and the nearest that is taken.
CASES: Mapping[str, tuple[Sequence[aws.Made], str, Sequence[aws.Made]]] = {
    "a group of another VPC than its balancer": (listening("vpc-2"), "ValidationError", listening("vpc-1")),
    "a target group of two balancers": (of_two("a", "b"), "TargetGroupAssociationLimit", of_two("a")),
    "a balancer twice in a zone": ([subnet(1), subnet(2), balancer(1, 2)], "InvalidConfigurationRequest", [*IN_TWO, balancer(1, 2)]),
    "a balancer in two VPCs": ([*IN_TWO, balancer(1, 3)], "InvalidConfigurationRequest", [*IN_TWO, balancer(1)]),
    "a cluster in one zone": ([subnet(1), subnet(2), cluster(**OF_ONE)], EKS, [*IN_TWO, cluster(**OF_ONE)]),
    "nodes outside the VPC of their cluster": ([*IN_TWO, cluster(**OF_ONE), nodes(subnetIds=["subnet-3"])], EKS, [*IN_TWO, cluster(**OF_ONE), nodes(subnetIds=["subnet-2"])]),
    "a function's role for machines": (function("ec2.amazonaws.com"), LAMBDA, function("lambda.amazonaws.com")),
    "a pod's role without its tags": (pods("sts:AssumeRole"), EKS, pods("sts:AssumeRole", "sts:TagSession")),
    "a subnet outside its VPC": ([VPC, OTHER_VPC, subnet(1, "vpc-2")], "InvalidSubnet.Range", [VPC, OTHER_VPC, subnet(1)]),
    "subnets over each other": ([VPC, subnet(1), subnet(2, block="10.0.1.0/25")], "InvalidSubnet.Conflict", [VPC, subnet(1), subnet(2)]),
    "Services among the VPC's addresses": ([VPC, cluster(kubernetesNetworkConfig={"serviceIpv4Cidr": "10.0.0.0/20"})], EKS, [VPC, cluster(kubernetesNetworkConfig={"serviceIpv4Cidr": "172.20.0.0/16"})]),
    "names without the VPC's own": ([VPC, (aws.ENDPOINT, "e", NAMED)], "InvalidParameter", [(aws.ENDPOINT, "e", NAMED)]),
    "a service's name twice in a VPC": ([(aws.ENDPOINT, each, NAMED) for each in "ab"], "InvalidParameter", [(aws.ENDPOINT, "a", NAMED), (aws.ENDPOINT, "b", {**NAMED, "vpcId": "vpc-2"})]),
    "a NAT gateway without a way out": ([VPC, subnet(1), nat(1, 1)], "Gateway.NotAttached", [VPC, WAY_OUT, subnet(1), nat(1, 1)]),
    "two inline policies of 6,000 characters": (inline(6000), "LimitExceeded", inline(5000)),
    "reserved concurrency": ([one(aws.FUNCTIONS, name="f", reservedConcurrentExecutions=901)], LAMBDA, [one(aws.FUNCTIONS, name="f", reservedConcurrentExecutions=900)]),
    "a queue that delivers again too early": (feeding(30), LAMBDA, feeding(60)),
    "a record outside its zone": ([ZONE, record("kafka.other.internal")], "InvalidChangeBatch", [ZONE, record("Kafka.ORDERS.internal.")]),
    "a record twice, once with a dot": ([record("k.orders.internal"), record("K.orders.internal.")], "InvalidChangeBatch", [record("k.orders.internal"), record("l.orders.internal")]),
    "a rule twice, by its protocol's name and number": ([rule("a"), rule("b", ipProtocol="6")], "InvalidPermission.Duplicate", [rule("a"), rule("b", ipProtocol="17")]),
    "a newer kube-proxy": (proxy("v1.36.0-eksbuild.1"), EKS, proxy("v1.35.0-eksbuild.1")),
    "a kube-proxy four versions older": (proxy("v1.31.0-eksbuild.1"), EKS, proxy("v1.32.0-eksbuild.1")),
    "a machine that the image does not run on": (launched({"instanceType": "m7i.large"}, amiType="AL2023_ARM_64_STANDARD"), EKS, launched({"instanceType": "m7g.large"}, amiType="AL2023_ARM_64_STANDARD")),
    "a type named twice": (launched({"instanceType": "m7i.large"}, instanceTypes=["m7i.large"]), EKS, launched({}, instanceTypes=["m7i.large"])),
    "a script for EKS's image": (launched({"userData": SCRIPT}, amiType=AL2023), EKS, launched({"imageId": AMI, "userData": SCRIPT})),
    "everybody, under a block": ([everybody(), block(kept=True)], "AccessDenied", [everybody(), block(kept=False)]),
    "everybody, as buckets are made": ([everybody()], "AccessDenied", [everybody("StringEquals", aws_PrincipalOrgID="o-a")]),
    "everybody by TLS": ([everybody("Bool", aws_SecureTransport="true")], "AccessDenied", [everybody("StringEquals", aws_SourceVpce="vpce-1")]),
    "everybody from everywhere": ([everybody("IpAddress", aws_SourceIp="0.0.0.0/0")], "AccessDenied", [everybody("IpAddress", aws_SourceIp="192.0.2.0/24")]),
    "everybody of whatever name": ([everybody("StringLike", aws_PrincipalArn="*")], "AccessDenied", [everybody("StringLike", aws_PrincipalArn=f"{aws.ROLE_ARN}*")]),
    "an alarm that calls abroad": (abroad(aws.ALARM_TYPE, alarmActions=["arn:aws:sns:eu-west-1:123456789012:a"]), "ValidationError", abroad(aws.ALARM_TYPE, alarmActions=["arn:aws:sns:us-east-1:123456789012:a"])),
    "dead letters abroad": (abroad(aws.QUEUES, redrivePolicy='{"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:123456789012:d"}'), "InvalidParameterValue", [subnet(1), subnet(2, zone="eu-west-1a")]),
}  # fmt: skip
# What is named by nothing yet is never there twice.
UNNAMED: Sequence[Sequence[aws.Made]] = (
    [one("ec2/natGateway:NatGateway", each, connectivityType="private") for each in "ab"],
    [one("ec2/internetGateway:InternetGateway", each) for each in "ab"],
    [one("route53/zone:Zone", each, name="orders.internal") for each in "ab"],
    [one("cloudwatch/eventRule:EventRule", each, name="r") for each in "ab"],
)


@every_case(("resources", "code"), [row[:2] for row in CASES.values()], ids=list(CASES))
def test_what_others_rule_out_is_refused(resources: Sequence[aws.Made], code: str) -> None:
    found = list(neighbours.refusals(aws.made(*resources)))
    assert {each.code for each in found} == {code}
    assert all(each.resource for each in found)


@every_case("resources", [*(row[2] for row in CASES.values()), *UNNAMED], ids=[*CASES, *"1234"])
def test_what_others_leave_room_for_is_taken(resources: Sequence[aws.Made]) -> None:
    assert [each.sentence for each in neighbours.refusals(aws.made(*resources))] == []


def test_the_gate_asks_about_neighbours_as_well() -> None:
    resources = aws.made(*CASES["subnets over each other"][0])
    assert "InvalidSubnet.Conflict" in {each.code for each in gate.all_refusals(resources)}


@every_case("block", [{}, {"cidrBlock": "10.1.0.0/99"}, {"cidrBlock": "ten"}])
def test_subnets_beside_a_block_that_is_none_are_judged_all_the_same(block: dict[str, str]) -> None:
    """Of a pool of IPAM, or mistyped: what each alone says of it."""
    unknown = one(aws.SUBNET, "unknown", vpcId="vpc-1", **block)
    overlapping = [subnet(1), subnet(2, block="10.0.1.0/25")]
    found = neighbours.refusals(aws.made(("ec2/vpc:Vpc", "vpc-1", block), unknown, *overlapping))
    assert [(each.code, each.resource) for each in found] == [
        ("InvalidSubnet.Conflict", "subnet-2")
    ]
