"""The account around and below a cluster: what a replacement needs, and what is announced."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from core.checks.finding import Weight
from core.ground.instances import STANDARD_QUOTA
from tests.every_case import every_case
from tests.unit.cli.survey import around, worlds
from tests.unit.cli.survey.around import SERVICE_ROLE
from tests.unit.cli.survey.changes import (
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
from tests.unit.cli.survey.machines import provisioned
from tests.unit.cli.survey.manifests import workload
from tests.unit.cli.survey.others import changed, checks, every, own, surveyed
from tests.unit.cli.survey.platforms import template
from tests.unit.cli.survey.worlds import Change, World, bare

SOON = datetime.now(UTC) + timedelta(days=20)
EXTENDED = {
    "clusterVersion": "1.34",
    "status": "extended-support",
    "endOfExtendedSupportDate": around.FAR,
}
GROUP_ARN = "arn:aws:autoscaling:eu-north-1:1:autoScalingGroup:0:autoScalingGroupName/{}"


def free(zone: str, addresses: int) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.around.subnets[f"subnet-{zone}"] = (f"eu-north-1{zone}", addresses)

    return change


def plane(**said: Any) -> Callable[[World], None]:
    return lambda world: world.around.cluster.update(said)


def version(**said: Any) -> Callable[[World], None]:
    return lambda world: world.around.versions[0].update(said)


def shifted(arn: str, **said: Any) -> Callable[[World], None]:
    shift = {"appliedStatus": "APPLIED", "awayFrom": "eun1-az1", "expiryTime": around.FAR, **said}
    return lambda world: world.around.managed.append({"arn": arn, "zonalShifts": [shift]})


def told(category: str, *entities: str, service: str = "EC2") -> Callable[[World], None]:
    event = {
        "arn": "arn:aws:health:it",
        "service": service,
        "eventTypeCode": f"AWS_{service}_OPERATIONAL_ISSUE",
        "eventTypeCategory": category,
        "region": "eu-north-1",
        "startTime": around.FAR,
    }

    def change(world: World) -> None:
        world.around.events.append(event)
        world.around.entities += [{"eventArn": event["arn"], "entityValue": e} for e in entities]

    return change


def behind(**said: str) -> Callable[[World], None]:
    """Brokers behind a load balancer, whose target group says something."""

    def change(world: World) -> None:
        worlds.bind(world, "aws-load-balancer-controller:v3.5.0", "shop-kafka", "orders")
        gate = {"conditionType": "target-health.elbv2.k8s.aws/boot"}
        every(world, "pods", readinessGates=[gate])
        world.around.said.update(said)

    return change


def custom_networking(world: World) -> None:
    said = {"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}
    world.add("daemonsets", workload("aws-node", "kube-system", "amazon-k8s-cni:v1.20", **said))


def arm_beside(world: World) -> None:
    """Machines of other families, and spot, count for other quotas."""
    cores = {"CoreCount": 400, "ThreadsPerCore": 1}
    world.around.machines += [
        {"InstanceId": "i-g", "InstanceType": "g5.48xlarge", "CpuOptions": cores},
        {"InstanceId": "i-x", "InstanceType": "x2gd.metal", "CpuOptions": cores},
        {
            "InstanceId": "i-s",
            "InstanceType": "m7g.metal",
            "CpuOptions": cores,
            "InstanceLifecycle": "spot",
        },
        {"InstanceId": "i-m", "InstanceType": "m7g.metal", "CpuOptions": {"CoreCount": 90}},
    ]


AROUND: dict[str, tuple[Callable[[World], object], set[str]]] = {
    "nothing": (lambda _: None, set()),
    "one address in a zone": (free("a", 1), {"subnet-full"}),
    "none in a zone where no node of Kafka is": (free("d", 0), set()),
    "five addresses": (free("b", 5), {"subnet-tight"}),
    "a subnet that is gone": (lambda w: w.around.subnets.pop("subnet-c"), {"subnet-gone"}),
    "groups that name no subnets": (
        lambda w: [group.pop("VPCZoneIdentifier") for group in w.groups.values()],
        {"subnet-unknown"},
    ),
    "pods in other subnets": (custom_networking, {"subnet-elsewhere"}),
    "one address and pods in other subnets": (
        both(custom_networking, free("a", 1)),
        {"subnet-elsewhere", "subnet-tight"},
    ),
    "a quota that is full": (
        lambda w: w.around.limits.update({STANDARD_QUOTA: 13}),
        {"quota-machines"},
    ),
    "others' machines of other quotas": (
        both(arm_beside, lambda w: w.around.limits.update({STANDARD_QUOTA: 105})),
        set(),
    ),
    "machines of no type": (
        lambda w: [each.pop("InstanceType") for each in w.instances.values()],
        {"quota-unknown"},
    ),
    "disks up to the quota": (lambda w: w.around.gib.append(511_990), {"quota-disks"}),
    "extended support": (
        lambda w: w.around.versions.__setitem__(0, EXTENDED),
        {"support-extended"},
    ),
    "support that is over": (version(versionStatus="UNSUPPORTED"), {"support-over"}),
    "a version that EKS does not list": (plane(version="1.37"), {"support-unknown"}),
    "an upgrade by AWS in three weeks": (
        both(
            plane(upgradePolicy={"supportType": "STANDARD"}), version(endOfStandardSupportDate=SOON)
        ),
        {"support-ends"},
    ),
    "the same with a year more": (
        both(
            plane(upgradePolicy={"supportType": "EXTENDED"}), version(endOfStandardSupportDate=SOON)
        ),
        set(),
    ),
    "an upgrade under way": (plane(status="UPDATING"), {"cluster-changing"}),
    "a cluster that is deleted": (plane(status="DELETING"), {"cluster-deleting"}),
    "a cluster that EKS calls ill": (
        plane(health={"issues": [{"code": "Ec2SubnetNotFound"}]}),
        {"cluster-issues"},
    ),
    "kubelets of long ago": (
        lambda w: [
            n.update(status={**n["status"], "nodeInfo": {"kubeletVersion": "v1.30.4-eks-0"}})
            for n in w.kinds["nodes"]
        ],
        {"kubelet-skew"},
    ),
    "an insight": (
        lambda w: w.around.insights.append(
            {"id": "0", "name": "Kubelet version skew", "insightStatus": {"status": "ERROR"}}
        ),
        {"upgrade-insights"},
    ),
    "a cluster that is shifted": (shifted(around.CLUSTER), {"zone-shifted"}),
    "a group that is shifted": (
        shifted(GROUP_ARN.format("asg-of-node-of-orders-mains-0")),
        {"zone-shifted"},
    ),
    "a shift that gave way": (shifted(around.CLUSTER, appliedStatus="NOT_APPLIED"), set()),
    "somebody else's balancer that is shifted": (shifted("arn:aws:other"), {"zone-shifted"}),
    "autoshift": (
        lambda w: w.around.managed.append(
            {"arn": around.CLUSTER, "zonalAutoshiftStatus": "ENABLED"}
        ),
        {"autoshift"},
    ),
    "autoshift of somebody else's": (
        lambda w: w.around.managed.append({"arn": "arn:o", "zonalAutoshiftStatus": "ENABLED"}),
        set(),
    ),
    "an issue of EC2's": (told("issue"), {"health-issue"}),
    "a change of a volume": (
        told("scheduledChange", "vol-data-orders-mains-0", service="EBS"),
        {"health-scheduled"},
    ),
    "a change of something else": (told("scheduledChange", "i-else"), set()),
    "a change that EC2 tells too": (
        both(
            told("scheduledChange", "i-orders-mains-0"),
            lambda w: w.events.update(
                {"i-orders-mains-0": [{"Code": "instance-retirement", "NotBefore": around.FAR}]}
            ),
        ),
        {"machine-retired"},
    ),
    "brokers behind a balancer": (behind(), set()),
    "a balancer that is shifted": (both(behind(), shifted(around.BALANCER)), {"zone-shifted"}),
    "a delay that outlasts the brokers": (
        behind(**{"deregistration_delay.timeout_seconds": "900"}),
        {"deregistration"},
    ),
    "connections that are kept": (
        behind(**{"deregistration_delay.connection_termination.enabled": "false"}),
        {"connections-kept"},
    ),
    "connections to what hangs": (
        behind(**{"target_health_state.unhealthy.connection_termination.enabled": "false"}),
        {"connections-unhealthy"},
    ),
    "clients' addresses": (behind(**{"preserve_client_ip.enabled": "true"}), {"client-ip"}),
    "a target group that is gone": (
        both(behind(), lambda w: setattr(w.around, "gone", True)),
        {"target-group-gone"},
    ),
    "a binding that names none": (
        both(behind(), lambda w: w.only("targetgroupbindings")["spec"].pop("targetGroupARN")),
        {"target-group-unnamed"},
    ),
    "one by its name": (
        both(
            behind(),
            lambda w: w.only("targetgroupbindings")["spec"].update(
                targetGroupARN=None, targetGroupName="boot"
            ),
        ),
        set(),
    ),
}


@every_case(("change", "said"), AROUND.values(), ids=AROUND.keys())
def test_of_an_account_what_stands_in_a_rotations_way_is_said(
    change: Callable[[World], object], said: set[str]
) -> None:
    assert checks(changed(own, change)()) == said


def test_karpenters_nodes_are_counted_by_the_subnets_they_stand_in() -> None:
    world = provisioned(bare())
    free("c", 0)(world)
    assert checks(world) == {"subnet-full"}


def test_a_hook_shorter_than_the_delay_of_nodes_as_targets_is_said() -> None:
    world = own()
    behind(**{"deregistration_delay.timeout_seconds": "3600"})(world)
    world.only("targetgroupbindings")["spec"]["targetType"] = "instance"
    assert "deregistration" in checks(world)


CALLS = (
    *("describe_subnets", "describe_volumes", "list_aws_default_service_quotas"),
    *("list_service_quotas", "describe_cluster_versions", "list_insights"),
    *("list_managed_resources", "describe_events", "describe_affected_entities"),
    *("describe_cluster", "describe_target_groups", "attributes"),
)


@pytest.mark.parametrize("call", CALLS)
def test_what_is_denied_of_the_account_is_unknown_and_costs_nothing_else(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = own()
    both(behind(), told("issue"))(world)

    def denied(*_: Any, **__: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, call)

    monkeypatch.setattr(around.Around, call, denied)
    found = surveyed(world)
    unread = [each for each in found if each.weight is Weight.UNKNOWN]
    assert len(unread) == 1
    assert "AccessDenied" in unread[0].evidence
    assert {each.check for each in found} <= {"unread", "health-issue"}


def test_without_a_plan_of_support_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        error = {"Error": {"Code": "SubscriptionRequiredException", "Message": "no"}}
        raise ClientError(error, "DescribeEvents")

    monkeypatch.setattr(around.Around, "describe_events", refused)
    (said,) = surveyed(own())
    assert said.check == "health-unasked"
    assert said.evidence.startswith("unknown: its API answers only")


def test_a_cluster_that_nobody_names_is_unknown() -> None:
    from cli.survey import command  # noqa: PLC0415
    from core.checks.table import findings  # noqa: PLC0415

    world = own()
    (said,) = findings(command.read(world, world.client, None))
    assert (said.check, said.weight) == ("unread", Weight.UNKNOWN)
    assert said.subject == "control plane, fargate profiles, upgrade insights"
    assert "--context" in said.evidence


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
    "an image that ECR fetches anew": (of_ecr("ImageNotFoundException", cached="strimzi"), set()),
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
