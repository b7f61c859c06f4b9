"""Clusters of others by the account below them: routes, endpoints, keys, templates, tags."""

from __future__ import annotations

from tests.every_case import every_case
from tests.unit.cli.survey.aws_ways import SERVICE_ROLE
from tests.unit.cli.survey.further_changes import (
    KEY,
    PRIVATE,
    blackhole,
    both,
    checked_disk,
    endpoint_of_api_server,
    endpoints,
    keyed,
    launching,
    nat_gone,
    no_default_route,
    of_ecr,
    one_nat,
    profile,
    role,
    routed_to,
    snapshots,
    system,
    tagged,
    template_keyed,
    vanished,
)
from tests.unit.cli.survey.hidden_changes import Change
from tests.unit.cli.survey.others import changed, checks, own
from tests.unit.cli.survey.platforms import template

ROOT = "arn:aws:iam::111122223333:root"

ACCOUNT: dict[str, tuple[Change, set[str]]] = {
    # Ways to AWS.
    "a NAT gateway per zone": (lambda _: None, set()),
    "one NAT gateway for all": (one_nat, {"nat-one-zone"}),
    "a NAT gateway of the region": (
        both(one_nat, lambda w: w.nats.update({"nat-a": "none"})),
        set(),
    ),
    "an internet gateway": (routed_to(GatewayId="igw-1"), set()),
    "a transit gateway": (routed_to(TransitGatewayId="tgw-1"), set()),
    "a route that leads nowhere": (blackhole, {"route-gone"}),
    "a route table that nobody lists": (lambda w: w.routes.pop("b"), {"route-unseen"}),
    "a NAT gateway that was deleted": (nat_gone, {"route-gone"}),
    "a private cluster with its endpoints": (
        both(no_default_route(), endpoints(*PRIVATE, "sqs", "autoscaling")),
        set(),
    ),
    "the same with Pod Identity": (
        both(no_default_route(), endpoints(*PRIVATE[:4], "eks-auth", "sqs", "autoscaling")),
        set(),
    ),
    "a private cluster without those of its termination handler": (
        both(no_default_route(), endpoints(*PRIVATE)),
        {"endpoints-beside"},
    ),
    "a private cluster that lost ecr.dkr": (
        both(
            no_default_route(),
            endpoints("ec2", "ecr.api", "s3", "sts", "sqs", "autoscaling"),
            endpoints("ecr.dkr", State="deleting"),
        ),
        {"endpoints-missing"},
    ),
    "a route to S3 in two zones of three": (
        both(
            no_default_route(),
            endpoints("ec2", "ecr.api", "ecr.dkr", "sts", "sqs", "autoscaling"),
            endpoints("s3", RouteTableIds=["rtb-a", "rtb-b"]),
        ),
        {"endpoints-missing"},
    ),
    "an API server that private subnets do not reach": (
        both(
            no_default_route(),
            endpoints(*PRIVATE, "sqs", "autoscaling"),
            endpoint_of_api_server(private=False),
        ),
        {"api-server-far"},
    ),
    "an API server in the VPC": (
        both(
            no_default_route(),
            endpoints(*PRIVATE, "sqs", "autoscaling"),
            endpoint_of_api_server(private=True),
        ),
        set(),
    ),
    "a public API server, and a way to it": (endpoint_of_api_server(private=False), set()),
    "new machines that end unless somebody completes a hook": (launching(), {"launch-hook"}),
    "new machines that go on by themselves": (launching(DefaultResult="CONTINUE"), set()),
    "an image in ECR": (of_ecr(), set()),
    "an image that ECR has no more": (of_ecr("ImageNotFoundException"), {"image-gone"}),
    "a repository that is gone": (of_ecr("RepositoryNotFoundException"), {"image-gone"}),
    "an image that ECR fetches anew": (
        of_ecr("ImageNotFoundException", cached="strimzi"),
        set(),
    ),
    "an image of another account's": (
        of_ecr("AccessDeniedException", account="999988887777"),
        set(),
    ),
    "an image that nobody may look up": (of_ecr("AccessDeniedException"), {"unread"}),
    "no way out and no endpoint": (no_default_route(), {"endpoints-missing"}),
    # Keys.
    "a key that is enabled": (keyed(), set()),
    "a key that is being made": (keyed(KeyState="Creating"), set()),
    "a key that is disabled": (keyed(KeyState="Disabled"), {"key-state"}),
    "a key that is deleted next week": (keyed(KeyState="PendingDeletion"), {"key-state"}),
    "a key that is gone": (keyed(error="NotFoundException"), {"key-state"}),
    "a key that may not be read": (keyed(error="AccessDeniedException"), {"unread"}),
    "another account's key, which tells nobody": (
        keyed(KEY.replace("111122223333", "999988887777"), error="AccessDeniedException"),
        {"volume-key"},
    ),
    "a template's key that names Auto Scaling": (template_keyed(ROOT, SERVICE_ROLE), set()),
    "a template's key that grants it": (template_keyed(ROOT, grants=(SERVICE_ROLE,)), set()),
    "a template's key for whoever comes by EC2": (template_keyed("*"), set()),
    "a template's key for the account alone": (template_keyed(ROOT), {"key-grant"}),
    "a template's key of AWS's": (template_keyed(KeyManager="AWS"), set()),
    "a template's key that is disabled": (
        template_keyed(SERVICE_ROLE, KeyState="Disabled"),
        {"template-key"},
    ),
    # Templates.
    "a template of what is there": (
        template(ImageId="ami-1", KeyName="ops", SecurityGroupIds=["sg-1"]),
        set(),
    ),
    "an image that was deregistered": (vanished("ami-1", ImageId="ami-1"), {"template-parts"}),
    "an image by a parameter": (vanished("x", ImageId="resolve:ssm:/aws/eks/x"), set()),
    "a key pair that somebody deleted": (vanished("ops", KeyName="ops"), {"template-parts"}),
    "a security group that is gone": (
        vanished("sg-1", NetworkInterfaces=[{"DeviceIndex": 0, "Groups": ["sg-1"]}]),
        {"template-parts"},
    ),
    "a role with an access entry": (role("eks-nodes", mode="API", known=("eks-nodes",)), set()),
    "a role in aws-auth": (role("eks-nodes", mode="CONFIG_MAP", mapped="eks-nodes"), set()),
    "a role in aws-auth, which is not asked": (
        role("eks-nodes", mode="API", mapped="eks-nodes"),
        {"node-role"},
    ),
    "a role that nobody lets in": (
        role("eks-nodes", mode="API_AND_CONFIG_MAP", known=("people",)),
        {"node-role"},
    ),
    "an instance profile that is gone": (
        role(None, mode="API", known=("eks-nodes",)),
        {"template-parts"},
    ),
    "capacity reservations alone": (
        template(
            CapacityReservationSpecification={
                "CapacityReservationPreference": "capacity-reservations-only"
            }
        ),
        {"group-placement"},
    ),
    "capacity reservations first": (
        template(CapacityReservationSpecification={"CapacityReservationPreference": "open"}),
        set(),
    ),
    # Disks.
    "a disk that EBS calls impaired": (
        checked_disk("impaired", "io-enabled", "failed"),
        {"volume-impaired"},
    ),
    "a disk that is slower than bought": (
        checked_disk("warning", "io-performance", "degraded"),
        {"volume-impaired"},
    ),
    "a snapshot under way": (snapshots(1), set()),
    "several snapshots under way": (snapshots(2), {"volume-snapshots"}),
    # Machines.
    "machines that a schedule stops": (tagged(Schedule="office-hours"), {"machine-marked"}),
    "machines that are patched": (tagged(Patch_Group="prod"), {"machine-marked"}),
    "machines with tags of their own": (tagged(team="data"), set()),
    "Amazon Linux 2": (system("Amazon Linux 2"), {"image-ended"}),
    "Amazon Linux 2023": (system("Amazon Linux 2023.9.20261101"), set()),
    "an Outpost": (
        lambda w: [each.update(OutpostArn="arn:outpost/op-1") for each in w.instances.values()],
        {"outpost"},
    ),
    "a Fargate profile for web": (profile("web"), set()),
    "a Fargate profile for all": (profile("*"), {"fargate-takes"}),
    "a Fargate profile for some of these": (profile("shop-*", team="web"), set()),
}


@every_case(("change", "said"), ACCOUNT.values(), ids=ACCOUNT.keys())
def test_what_the_account_keeps_from_a_replacement_is_found(change: Change, said: set[str]) -> None:
    assert checks(changed(own, change)()) == said
