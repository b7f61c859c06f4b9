"""What is each alone in order and refused together: names, counts, sums and pairs."""

from __future__ import annotations

from typing import Any

import pytest

from local.refusals import together
from local.refusals.refusal import Wanted
from tests.unit.local.seeded_inputs import HOOK, INGRESS, LAMBDA, RULE, document


def several(token: str, number: int, **inputs: Any) -> list[Wanted]:
    """Return so many resources alike; {} in an input is each one's number."""
    return [
        Wanted(
            f"aws:{token}",
            f"each-{n}",
            {k: v.format(n) if isinstance(v, str) else v for k, v in inputs.items()},
        )
        for n in range(number)
    ]


def group(hooks: int) -> Wanted:
    own = [{"name": f"own-{n}"} for n in range(hooks)]
    return Wanted("aws:autoscaling/group:Group", "g", {"name": "g", "initialLifecycleHooks": own})


def vpc(**changed: Any) -> Wanted:
    return Wanted("aws:ec2/vpc:Vpc", "vpc-1", {"cidrBlock": "10.40.0.0/16", **changed})


def subnet(**changed: Any) -> Wanted:
    return Wanted("aws:ec2/subnet:Subnet", "subnet-1", {"vpcId": "vpc-1", **changed})


def cluster(*subnets: str) -> Wanted:
    return Wanted("aws:eks/cluster:Cluster", "c", {"vpcConfig": {"subnetIds": list(subnets)}})


TOGETHER = [
    pytest.param(
        several(INGRESS, 61, **{**RULE, "cidrIpv4": "10.{}.0.0/16"}),
        "RulesPerSecurityGroupLimitExceeded",
        id="sixty-one rules of a group",
    ),
    pytest.param(several(INGRESS, 2, **RULE), "InvalidPermission.Duplicate", id="a rule twice"),
    pytest.param(
        several("iam/role:Role", 2, name="tick"), "EntityAlreadyExists", id="a role's name twice"
    ),
    pytest.param(
        several("lb/listener:Listener", 51, loadBalancerArn="nlb", port="{}"),
        "TooManyListeners",
        id="fifty-one listeners",
    ),
    pytest.param(
        several(HOOK, 51, name="h{}", autoscalingGroupName="g"),
        "LimitExceeded",
        id="fifty-one hooks",
    ),
    pytest.param(
        [Wanted("aws:bcmdata/export:Export", name, {"export": {"name": "bill"}}) for name in "ab"],
        "ValidationException",
        id="an export's name twice",
    ),
    pytest.param(
        several("cloudwatch/eventTarget:EventTarget", 6, rule="r", targetId="{}"),
        "LimitExceededException",
        id="six targets of a rule",
    ),
    pytest.param(
        several("iam/rolePolicyAttachment:RolePolicyAttachment", 11, role="r", policyArn="{}"),
        "LimitExceeded",
        id="eleven policies of a role",
    ),
    pytest.param(
        [
            Wanted("aws:iam/rolePolicy:RolePolicy", name, {"role": "r", "policy": document(6000)})
            for name in ("one", "another")
        ],
        "LimitExceeded",
        id="two inline policies of 6,000 characters",
    ),
    pytest.param(
        several(LAMBDA, 1, name="webhook", reservedConcurrentExecutions=901),
        "InvalidParameterValueException",
        id="reserved concurrency beyond what must be left",
    ),
    pytest.param(
        [
            Wanted("aws:sqs/queue:Queue", "q", {"name": "q", "visibilityTimeoutSeconds": 30}),
            Wanted(f"aws:{LAMBDA}", "f", {"name": "f", "timeout": 60}),
            Wanted(
                "aws:lambda/eventSourceMapping:EventSourceMapping",
                "m",
                {"eventSourceArn": "arn:aws:sqs:us-east-1:123456789012:q", "functionName": "f"},
            ),
        ],
        "InvalidParameterValueException",
        id="a queue that delivers again before its function is over",
    ),
    pytest.param(
        [
            Wanted("aws:ec2/vpc:Vpc", "vpc-1", {"cidrBlock": "10.0.0.0/16"}),
            Wanted("aws:ec2/vpc:Vpc", "vpc-2", {"cidrBlock": "10.1.0.0/16"}),
            Wanted("aws:ec2/subnet:Subnet", "s", {"vpcId": "vpc-1", "cidrBlock": "10.1.0.0/24"}),
        ],
        "InvalidSubnet.Range",
        id="a subnet outside its VPC",
    ),
    pytest.param(
        several("ec2/natGateway:NatGateway", 2, allocationId="eipalloc-1"),
        "Resource.AlreadyAssociated",
        id="two NAT gateways of one address",
    ),
    pytest.param(
        several("ec2/internetGateway:InternetGateway", 2, vpcId="vpc-1"),
        "Resource.AlreadyAssociated",
        id="two gateways of one VPC",
    ),
    pytest.param(
        several("ec2/routeTableAssociation:RouteTableAssociation", 2, subnetId="subnet-1"),
        "Resource.AlreadyAssociated",
        id="two route tables of one subnet",
    ),
    pytest.param(
        several("eks/nodeGroup:NodeGroup", 2, clusterName="c", nodeGroupName="n"),
        "ResourceInUseException",
        id="a node group's name twice",
    ),
    pytest.param(
        [
            Wanted("aws:ec2/vpc:Vpc", "v", {"cidrBlock": "10.100.0.0/16"}),
            Wanted(
                "aws:eks/cluster:Cluster",
                "c",
                {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16"}},
            ),
        ],
        "InvalidParameterException",
        id="Services among the VPC's addresses",
    ),
    pytest.param(
        several(
            "lb/listener:Listener",
            2,
            loadBalancerArn="nlb-{}",
            port="1",
            defaultActions=[{"targetGroupArn": "g"}],
        ),
        "TargetGroupAssociationLimit",
        id="a target group of two balancers",
    ),
    pytest.param(
        several("ec2/subnet:Subnet", 2, vpcId="vpc", cidrBlock="10.0.0.0/2{}"),
        "InvalidSubnet.Conflict",
        id="subnets over each other",
    ),
]


@pytest.mark.parametrize(("resources", "code"), TOGETHER)
def test_what_only_several_resources_exceed_is_refused(resources: list[Wanted], code: str) -> None:
    found = list(together.refusals(resources))
    assert {refusal.code for refusal in found} == {code}
    assert all(refusal.resource for refusal in found)


@pytest.mark.parametrize("block", [{}, {"cidrBlock": "10.1.0.0/99"}, {"cidrBlock": "ten"}])
def test_subnets_beside_a_block_that_is_none_are_judged_all_the_same(block: dict[str, str]) -> None:
    """Of a pool of IPAM, or mistyped: what each alone says of it."""
    found = together.refusals(
        [
            Wanted("aws:ec2/vpc:Vpc", "vpc", block),
            Wanted("aws:ec2/subnet:Subnet", "unknown", {"vpcId": "vpc", **block}),
            *several("ec2/subnet:Subnet", 2, vpcId="vpc", cidrBlock="10.0.0.0/2{}"),
        ]
    )
    assert [(each.code, each.resource) for each in found] == [("InvalidSubnet.Conflict", "each-1")]


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param(
            [group(30), *several(HOOK, 20, name="h{}", autoscalingGroupName="g")], id="hooks"
        ),
        pytest.param(
            [vpc(assignGeneratedIpv6CidrBlock=True), subnet(ipv6CidrBlock="2001:db8::/64")],
            id="a subnet of a VPC with IPv6",
        ),
        pytest.param([vpc(cidrBlock=None), subnet(cidrBlock="10.0.0.0/24")], id="of a pool"),
    ],
)
def test_what_goes_as_far_as_a_limit_together_is_taken(resources: list[Wanted]) -> None:
    assert list(together.refusals(resources)) == []
