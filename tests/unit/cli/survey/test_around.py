"""The account around and below a cluster: what a replacement needs, and what is announced."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from core.checks.finding import Weight
from core.ground.instances import STANDARD_QUOTA
from tests.every_case import every_case
from tests.unit.cli.survey import around
from tests.unit.cli.survey.around import SERVICE_ROLE, refuse
from tests.unit.cli.survey.changes import (
    KEY,
    added,
    both,
    endpoints,
    nat_gone,
    no_default_route,
    of_ecr,
    role,
    routed_to,
    template,
    template_keyed,
)
from tests.unit.cli.survey.machines import hook
from tests.unit.cli.survey.manifests import workload
from tests.unit.cli.survey.others import changed, checks, own, rows, surveyed
from tests.unit.cli.survey.worlds import Change, World, at, bind, more

SOON = datetime.now(UTC) + timedelta(days=20)
EXTENDED = {
    "clusterVersion": "1.34",
    "status": "extended-support",
    "endOfExtendedSupportDate": around.FAR,
}
plane, version = partial(at, "around.cluster"), partial(at, "around.versions.0")
GROUP_ARN = "arn:aws:autoscaling:eu-north-1:1:autoScalingGroup:0:autoScalingGroupName/{}"


def free(zone: str, addresses: int) -> Change:
    return at(f"around.subnets.subnet-{zone}", (f"eu-north-1{zone}", addresses))


def shifted(arn: str, **said: Any) -> Change:
    shift = {"appliedStatus": "APPLIED", "awayFrom": "eun1-az1", "expiryTime": around.FAR, **said}
    return more("around.managed", {"arn": arn, "zonalShifts": [shift]})


def told(category: str, *entities: str, service: str = "EC2") -> Change:
    event = {
        "arn": "arn:aws:health:it",
        "service": service,
        "eventTypeCode": f"AWS_{service}_OPERATIONAL_ISSUE",
        "eventTypeCategory": category,
        "region": "eu-north-1",
        "startTime": around.FAR,
    }

    named = [{"eventArn": event["arn"], "entityValue": each} for each in entities]
    return both(more("around.events", event), more("around.entities", *named))


def behind(**said: str) -> Change:
    """Brokers behind a load balancer, whose target group says something."""
    image = "aws-load-balancer-controller:v3.5.0"
    gate = {"conditionType": "target-health.elbv2.k8s.aws/boot"}
    return both(
        lambda world: bind(world, image, "shop-kafka", "orders"),
        at("pods.*.spec", readinessGates=[gate]),
        lambda world: world.around.said.update(said),
    )


CUSTOM_NETWORKING = added(
    "daemonsets",
    workload(
        *("aws-node", "kube-system", "amazon-k8s-cni:v1.20"),
        AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG="true",
    ),
)
CORES = {"CpuOptions": {"CoreCount": 400, "ThreadsPerCore": 1}}
# Machines of other families, and spot, count for other quotas.
BESIDE = more(
    "around.machines",
    {"InstanceId": "i-g", "InstanceType": "g5.48xlarge", **CORES},
    {"InstanceId": "i-x", "InstanceType": "x2gd.metal", **CORES},
    {"InstanceId": "i-s", "InstanceType": "m7g.metal", "InstanceLifecycle": "spot", **CORES},
    {"InstanceId": "i-m", "InstanceType": "m7g.metal", "CpuOptions": {"CoreCount": 90}},
)


DISK = "vol-data-orders-mains-0"
# What a VPC without a way to the internet has, for nodes and for the roles of pods.
PRIVATE = ("ec2", "ecr.api", "ecr.dkr", "s3", "sts")
# As people save: all zones by the NAT gateway of the first.
one_nat = at("routes.*.-1.NatGatewayId", "nat-a")


def keyed(key: str = KEY, **said: Any) -> Change:
    """Encrypt the first broker's disk under a key of which something is said."""
    disks = at("around.disks", **{DISK: {"KmsKeyId": key}})
    return both(disks, lambda world: world.key.update(said))


def vanished(name: str, **named: Any) -> Change:
    """Let a template name something that is gone."""
    return both(template(**named), lambda world: world.vanished.add(name))


def launching(**said: Any) -> Change:
    usual = {"LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING"}
    return more("hooks.first", hook(**usual, **said))


def endpoint_of_api_server(*, private: bool) -> Change:
    return plane(resourcesVpcConfig={"endpointPrivateAccess": private})


def checked_disk(status: str, name: str, said: str) -> Change:
    found = {"Status": status, "Details": [{"Name": name, "Status": said}]}
    return at("checked", [{"VolumeId": DISK, "VolumeStatus": found}])


def snapshots(count: int) -> Change:
    return at("snapshots", [{"VolumeId": DISK, "State": "pending"}] * count)


def profile(namespace: str, **said: Any) -> Change:
    return at("profiles", all=[{"namespace": namespace, **said}])


def tagged(**tags: str) -> Change:
    given = [{"Key": key.replace("_", " "), "Value": value} for key, value in tags.items()]
    return at("instances.*", Tags=given)


def system(image: str) -> Change:
    return at("nodes.*.status.nodeInfo", {"osImage": image})


ROOT = "arn:aws:iam::111122223333:root"
AROUND: dict[str, Change] = {
    "one address in a zone => subnet-full": free("a", 1),
    "none in a zone where no node of Kafka is =>": free("d", 0),
    "five addresses => subnet-tight": free("b", 5),
    "a subnet that is gone => subnet-gone": lambda w: w.around.subnets.pop("subnet-c"),
    "groups that name no subnets => subnet-unknown": lambda w: [
        group.pop("VPCZoneIdentifier") for group in w.groups.values()
    ],
    "pods in other subnets => subnet-elsewhere": CUSTOM_NETWORKING,
    "one address and pods in other subnets => subnet-elsewhere subnet-tight": both(
        CUSTOM_NETWORKING, free("a", 1)),
    "a quota that is full => quota-machines": at(
        f"around.limits.{STANDARD_QUOTA}", 13),
    "others' machines of other quotas =>": both(
        BESIDE, at(f"around.limits.{STANDARD_QUOTA}", 105)),
    "machines of no type => quota-unknown": lambda w: [
        each.pop("InstanceType") for each in w.instances.values()
    ],
    "disks up to the quota => quota-disks": lambda w: w.around.gib.append(511_990),
    "extended support => support-extended": at("around.versions.0", EXTENDED),
    "support that is over => support-over": version(versionStatus="UNSUPPORTED"),
    "a version that EKS does not list => support-unknown": plane(version="1.37"),
    "an upgrade by AWS in three weeks => support-ends": both(
        plane(upgradePolicy={"supportType": "STANDARD"}), version(endOfStandardSupportDate=SOON)),
    "the same with a year more =>": both(
        plane(upgradePolicy={"supportType": "EXTENDED"}), version(endOfStandardSupportDate=SOON)),
    "an upgrade under way => cluster-changing": plane(status="UPDATING"),
    "a cluster that is deleted => cluster-deleting": plane(status="DELETING"),
    "a cluster that EKS calls ill => cluster-issues": plane(
        health={"issues": [{"code": "Ec2SubnetNotFound"}]}),
    "kubelets of long ago => kubelet-skew": at(
        "nodes.*.status.nodeInfo", {"kubeletVersion": "v1.30.4-eks-0"}),
    "an insight => upgrade-insights": more("around.insights",
        {"id": "0", "name": "Kubelet version skew", "insightStatus": {"status": "ERROR"}}),
    "a cluster that is shifted => zone-shifted": shifted(around.CLUSTER),
    "a group that is shifted => zone-shifted": shifted(
        GROUP_ARN.format("asg-of-node-of-orders-mains-0")),
    "a shift that gave way =>": shifted(around.CLUSTER, appliedStatus="NOT_APPLIED"),
    "somebody else's balancer that is shifted => zone-shifted": shifted("arn:aws:other"),
    "autoshift => autoshift": more("around.managed",
        {"arn": around.CLUSTER, "zonalAutoshiftStatus": "ENABLED"}),
    "autoshift of somebody else's =>": more("around.managed",
        {"arn": "arn:o", "zonalAutoshiftStatus": "ENABLED"}),
    "an issue of EC2's => health-issue": told("issue"),
    "a change of a volume => health-scheduled": told(
        "scheduledChange", "vol-data-orders-mains-0", service="EBS"),
    "a change of something else =>": told("scheduledChange", "i-else"),
    "a change that EC2 tells too => machine-retired": both(
        told("scheduledChange", "i-orders-mains-0"),
        lambda w: w.events.update(
            {"i-orders-mains-0": [{"Code": "instance-retirement", "NotBefore": around.FAR}]})),
    "brokers behind a balancer =>": behind(),
    "a balancer that is shifted => zone-shifted": both(behind(), shifted(around.BALANCER)),
    "a delay that outlasts the brokers => deregistration": behind(
        **{"deregistration_delay.timeout_seconds": "900"}),
    "connections that are kept => connections-kept": behind(
        **{"deregistration_delay.connection_termination.enabled": "false"}),
    "connections to what hangs => connections-unhealthy": behind(
        **{"target_health_state.unhealthy.connection_termination.enabled": "false"}),
    "clients' addresses => client-ip": behind(**{"preserve_client_ip.enabled": "true"}),
    "a target group that is gone => target-group-gone": both(
        behind(), at("around.gone", True)),
    "a binding that names none => target-group-unnamed": both(
        behind(), lambda w: w.only("targetgroupbindings")["spec"].pop("targetGroupARN")),
    "one by its name =>": both(behind(),
        lambda w: w.only("targetgroupbindings")["spec"].update(
            targetGroupARN=None, targetGroupName="boot")),
    # Ways to AWS.
    "one NAT gateway for all => nat-one-zone": one_nat,
    "a NAT gateway of the region =>": both(one_nat, lambda w: w.nats.update({"nat-a": "none"})),
    "an internet gateway =>": routed_to(GatewayId="igw-1"),
    "a transit gateway =>": routed_to(TransitGatewayId="tgw-1"),
    "a route that leads nowhere => route-gone": at("routes.b.-1.State", "blackhole"),
    "a route table that nobody lists => route-unseen": lambda w: w.routes.pop("b"),
    "a NAT gateway that was deleted => route-gone": nat_gone,
    "a private cluster with its endpoints =>": both(
        no_default_route(), endpoints(*PRIVATE, "sqs", "autoscaling")),
    "the same with Pod Identity =>": both(
        no_default_route(), endpoints(*PRIVATE[:4], "eks-auth", "sqs", "autoscaling")),
    "a private cluster without those of its termination handler => endpoints-beside": both(
        no_default_route(), endpoints(*PRIVATE)),
    "a private cluster that lost ecr.dkr => endpoints-missing": both(no_default_route(),
        endpoints("ec2", "ecr.api", "s3", "sts", "sqs", "autoscaling"),
        endpoints("ecr.dkr", State="deleting")),
    "a route to S3 in two zones of three => endpoints-missing": both(no_default_route(),
        endpoints("ec2", "ecr.api", "ecr.dkr", "sts", "sqs", "autoscaling"),
        endpoints("s3", RouteTableIds=["rtb-a", "rtb-b"])),
    "an API server that private subnets do not reach => api-server-far": both(no_default_route(),
        endpoints(*PRIVATE, "sqs", "autoscaling"), endpoint_of_api_server(private=False)),
    "an API server in the VPC =>": both(no_default_route(),
        endpoints(*PRIVATE, "sqs", "autoscaling"), endpoint_of_api_server(private=True)),
    "a public API server, and a way to it =>": endpoint_of_api_server(private=False),
    "new machines that end unless somebody completes a hook => launch-hook": launching(),
    "new machines that go on by themselves =>": launching(DefaultResult="CONTINUE"),
    "an image in ECR =>": of_ecr(),
    "an image that ECR has no more => image-gone": of_ecr("ImageNotFoundException"),
    "a repository that is gone => image-gone": of_ecr("RepositoryNotFoundException"),
    "an image that ECR fetches anew =>": of_ecr("ImageNotFoundException", cached="strimzi"),
    "an image of another account's =>": of_ecr("AccessDeniedException", account="999988887777"),
    "an image that nobody may look up => unread": of_ecr("AccessDeniedException"),
    "no way out and no endpoint => endpoints-missing": no_default_route(),
    # Keys.
    "a key that is enabled =>": keyed(),
    "a key that is being made =>": keyed(KeyState="Creating"),
    "a key that is disabled => key-state": keyed(KeyState="Disabled"),
    "a key that is deleted next week => key-state": keyed(KeyState="PendingDeletion"),
    "a key that is gone => key-state": keyed(error="NotFoundException"),
    "a key that may not be read => unread": keyed(error="AccessDeniedException"),
    "another account's key, which tells nobody => volume-key": keyed(
        KEY.replace("111122223333", "999988887777"), error="AccessDeniedException"),
    "a template's key that names Auto Scaling =>": template_keyed(ROOT, SERVICE_ROLE),
    "a template's key that grants it =>": template_keyed(ROOT, grants=(SERVICE_ROLE,)),
    "a template's key for whoever comes by EC2 =>": template_keyed("*"),
    "a template's key for the account alone => key-grant": template_keyed(ROOT),
    "a template's key of AWS's =>": template_keyed(KeyManager="AWS"),
    "a template's key that is disabled => template-key": template_keyed(
        SERVICE_ROLE, KeyState="Disabled"),
    # Templates.
    "a template of what is there =>": template(
        ImageId="ami-1", KeyName="ops", SecurityGroupIds=["sg-1"]),
    "an image that was deregistered => template-parts": vanished("ami-1", ImageId="ami-1"),
    "an image by a parameter =>": vanished("x", ImageId="resolve:ssm:/aws/eks/x"),
    "a key pair that somebody deleted => template-parts": vanished("ops", KeyName="ops"),
    "a security group that is gone => template-parts": vanished(
        "sg-1", NetworkInterfaces=[{"DeviceIndex": 0, "Groups": ["sg-1"]}]),
    "a role with an access entry =>": role("eks-nodes", mode="API", known=("eks-nodes",)),
    "a role in aws-auth =>": role("eks-nodes", mode="CONFIG_MAP", mapped="eks-nodes"),
    "a role in aws-auth, which is not asked => node-role": role(
        "eks-nodes", mode="API", mapped="eks-nodes"),
    "a role that nobody lets in => node-role": role(
        "eks-nodes", mode="API_AND_CONFIG_MAP", known=("people",)),
    "an instance profile that is gone => template-parts": role(
        None, mode="API", known=("eks-nodes",)),
    "capacity reservations alone => group-placement": template(
        CapacityReservationSpecification={
            "CapacityReservationPreference": "capacity-reservations-only"}),
    "capacity reservations first =>": template(
        CapacityReservationSpecification={"CapacityReservationPreference": "open"}),
    # Disks.
    "a disk that EBS calls impaired => volume-impaired": checked_disk(
        "impaired", "io-enabled", "failed"),
    "a disk that is slower than bought => volume-impaired": checked_disk(
        "warning", "io-performance", "degraded"),
    "a snapshot under way =>": snapshots(1),
    "several snapshots under way => volume-snapshots": snapshots(2),
    # Machines.
    "machines that a schedule stops => machine-marked": tagged(Schedule="office-hours"),
    "machines that are patched => machine-marked": tagged(Patch_Group="prod"),
    "machines with tags of their own =>": tagged(team="data"),
    "Amazon Linux 2 => image-ended": system("Amazon Linux 2"),
    "Amazon Linux 2023 =>": system("Amazon Linux 2023.9.20261101"),
    "an Outpost => outpost": at("instances.*", OutpostArn="arn:outpost/op-1"),
    "a Fargate profile for web =>": profile("web"),
    "a Fargate profile for all => fargate-takes": profile("*"),
    "a Fargate profile for some of these =>": profile("shop-*", labels={"team": "web"}),
}  # fmt: skip


@every_case(("change", "said"), rows(AROUND), ids=AROUND)
def test_what_stands_in_a_rotations_way(change: Callable[[World], object], said: set[str]) -> None:
    assert checks(changed(own, change)()) == said


def test_a_hook_shorter_than_the_delay_of_nodes_as_targets_is_said() -> None:
    slow = behind(**{"deregistration_delay.timeout_seconds": "3600"})
    by_node = at("targetgroupbindings.0.spec.targetType", "instance")
    assert "deregistration" in checks(changed(own, both(slow, by_node))())


def test_without_a_plan_of_support_it_is_said_why() -> None:
    world = own()
    world.describe_events = lambda **_: refuse("SubscriptionRequiredException", "DescribeEvents")
    (said,) = surveyed(world)
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
