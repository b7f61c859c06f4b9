"""The account and region around other people's clusters, with nothing short or announced."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NoReturn

from botocore.exceptions import ClientError

from cli.survey.surroundings import DISKS as DISKS_QUOTA
from core.ground.instances import QUOTA_OF_FAMILY, STANDARD_QUOTA
from tests.unit.cli.survey.manifests import Item

DISKS = DISKS_QUOTA.name
CLUSTER = "arn:aws:eks:eu-north-1:111122223333:cluster/shop"
BALANCER = "arn:aws:elasticloadbalancing:eu-north-1:111122223333:loadbalancer/net/shop/0a1b"
TARGET_GROUP = "arn:aws:elasticloadbalancing:eu-north-1:111122223333:targetgroup/boot/0a1b"
FAR = datetime(2999, 1, 1, tzinfo=UTC)
ROLE = "arn:aws:iam::111122223333:role/aws-service-role/autoscaling.amazonaws.com/"
SERVICE_ROLE = f"{ROLE}AWSServiceRoleForAutoScaling"


class Around:
    """EC2's subnets and volumes, Service Quotas, EKS, ARC, AWS Health and ELB, as far as asked."""

    def __init__(self) -> None:
        # Subnet -> its zone and free addresses.
        self.subnets = {f"subnet-{z}": (f"eu-north-1{z}", 4000) for z in "abc"}
        self.subnets |= {f"subnet-out-{z}": (f"eu-north-1{z}", 4000) for z in "abc"}
        self.limits: dict[str, float] = dict.fromkeys(
            (STANDARD_QUOTA, *QUOTA_OF_FAMILY.values(), DISKS), 500.0
        )
        self.gib = [100]
        # Of Kafka's disks, what is unusual; and those that are gone.
        self.disks: dict[str, Item] = {}
        self.lost: set[str] = set()
        # Machines of the account beside the cluster's.
        self.machines: list[Item] = []
        self.cluster: Item = {"name": "shop", "arn": CLUSTER, "version": "1.34", "status": "ACTIVE"}
        self.versions: list[Item] = [
            {
                "clusterVersion": "1.34",
                "versionStatus": "STANDARD_SUPPORT",
                "endOfStandardSupportDate": FAR,
                "endOfExtendedSupportDate": FAR,
            }
        ]
        self.insights: list[Item] = []
        self.managed: list[Item] = []
        self.events: list[Item] = []
        self.entities: list[Item] = []
        self.group: Item = {
            "TargetGroupName": "boot",
            "TargetGroupArn": TARGET_GROUP,
            "Protocol": "TCP",
            "LoadBalancerArns": [BALANCER],
        }
        self.said = {
            "deregistration_delay.timeout_seconds": "60",
            "deregistration_delay.connection_termination.enabled": "true",
            "load_balancing.cross_zone.enabled": "true",
        }
        self.gone = False


def attributes(world: Any) -> list[Item]:
    return [{"Key": key, "Value": value} for key, value in world.around.said.items()]


def route_tables(world: Any) -> list[Item]:
    return [
        {
            "RouteTableId": f"rtb-{letter}",
            "VpcId": "vpc-1",
            "Routes": routes,
            "Associations": [{"SubnetId": f"subnet-{letter}", "Main": False}],
        }
        for letter, routes in world.routes.items()
    ]


def nat_gateways(world: Any) -> list[Item]:
    return [
        {"NatGatewayId": name, "State": "available", "SubnetId": f"subnet-out-{letter}"}
        for name, letter in world.nats.items()
    ]


# Call -> the key of its answer, and what a world holds there, whatever is asked.
WHOLE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "list_service_quotas": ("Quotas", lambda _: []),
    "describe_cluster_versions": ("clusterVersions", lambda w: w.around.versions),
    "list_insights": ("insights", lambda w: w.around.insights),
    "list_managed_resources": ("items", lambda w: w.around.managed),
    "describe_events": ("events", lambda w: w.around.events),
    "describe_affected_entities": ("entities", lambda w: w.around.entities),
    "describe_target_group_attributes": ("Attributes", attributes),
    "describe_load_balancer_attributes": ("Attributes", attributes),
    "describe_launch_configurations": ("LaunchConfigurations", lambda w: w.launch_configurations),
    "describe_route_tables": ("RouteTables", route_tables),
    "describe_nat_gateways": ("NatGateways", nat_gateways),
    "describe_vpc_endpoints": ("VpcEndpoints", lambda w: w.endpoints),
    "describe_volume_status": ("VolumeStatuses", lambda w: w.checked),
    "describe_snapshots": ("Snapshots", lambda w: w.snapshots),
    "describe_pull_through_cache_rules": (
        "pullThroughCacheRules",
        lambda w: [{"ecrRepositoryPrefix": each} for each in w.cached],
    ),
    "get_key_policy": ("Policy", lambda w: json.dumps(w.key_policy)),
    "list_grants": ("Grants", lambda w: w.grants),
    "list_access_entries": (
        "accessEntries",
        lambda w: [f"arn:aws:iam::111122223333:role/{each}" for each in w.entries],
    ),
    "list_fargate_profiles": ("fargateProfileNames", lambda w: list(w.profiles)),
}
# Call about one Auto Scaling group -> the key of its answer, and the world's field by group.
OF_A_GROUP = {
    "describe_lifecycle_hooks": ("LifecycleHooks", "hooks"),
    "describe_policies": ("ScalingPolicies", "policies"),
    "describe_scheduled_actions": ("ScheduledUpdateGroupActions", "actions"),
    "describe_instance_refreshes": ("InstanceRefreshes", "refreshes"),
}
# Call about what may have vanished -> the key of its answer, and of a name in it.
OF_NAMES = {
    "describe_security_groups": ("SecurityGroups", "GroupId"),
    "describe_key_pairs": ("KeyPairs", "KeyName"),
}


def refuse(code: str, call: str) -> NoReturn:
    raise ClientError({"Error": {"Code": code, "Message": "no"}}, call)


class AwsAnswers:
    """One client for every service of the account that a world is in.

    A NAT gateway stands in each zone; images, keys and roles are there unless told otherwise.
    """

    def __init__(self) -> None:
        # By the last letter of their subnet.
        self.routes: dict[str, list[Item]] = {
            letter: [
                {"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "State": "active"},
                {
                    "DestinationCidrBlock": "0.0.0.0/0",
                    "NatGatewayId": f"nat-{letter}",
                    "State": "active",
                },
            ]
            for letter in "abc"
        }
        # NAT gateway -> the letter of its zone.
        self.nats = {f"nat-{letter}": letter for letter in "abc"}
        self.endpoints: list[Item] = []
        self.checked: list[Item] = []
        self.snapshots: list[Item] = []
        # Of images, security groups and key pairs, those that are gone.
        self.vanished: set[str] = set()
        # Registry at ECR -> with which code it refuses; and prefixes that it fetches from others.
        self.registries: dict[str, str] = {}
        self.cached: list[str] = []
        self.key: Item = {"KeyState": "Enabled", "KeyManager": "CUSTOMER"}
        self.key_policy: Item = {"Statement": []}
        self.grants: list[Item] = []
        # Instance profile -> its role; and roles that have an access entry.
        self.roles: dict[str, str] = {}
        self.entries: list[str] = []
        self.role_made = datetime(2026, 3, 1, tzinfo=UTC)
        self.entry: Item = {"createdAt": datetime(2026, 3, 2, tzinfo=UTC), "type": "EC2_LINUX"}
        self.profiles: dict[str, list[Item]] = {}

    def client(self, service: str, region: str | None) -> Any:
        assert region in (None, "eu-north-1")
        return self

    def can_paginate(self, call: str) -> bool:
        return call != "describe_key_pairs"

    def get_paginator(self, call: str) -> Any:
        def paginate(**given: Any) -> list[Item]:
            return [getattr(self, call)(**given)]

        return type("Pages", (), {"paginate": staticmethod(paginate)})

    def __getattr__(self, call: str) -> Any:
        def answer(AutoScalingGroupName: str = "", **given: Any) -> Item:  # noqa: N803
            if call in WHOLE:
                key, held = WHOLE[call]
                return {key: held(self)}
            if call in OF_NAMES:
                key, name = OF_NAMES[call]
                return {key: self._left(given, name)}
            key, place = OF_A_GROUP[call]
            return {key: getattr(self, place).get(AutoScalingGroupName, [])}

        if call not in WHOLE | OF_A_GROUP | OF_NAMES:
            raise AttributeError(call)
        return answer

    def _left(self, given: Item, key: str) -> list[Item]:
        (names,) = (each["Values"] for each in given["Filters"])
        return [{key: name} for name in names if name not in self.vanished]

    def describe_instances(self, *, Filters: list[Item]) -> Item:  # noqa: N803
        """Return the machines that are named, or all that run in the account."""
        named = [each["Values"] for each in Filters if each["Name"] == "instance-id"]
        found = [
            self.instances[name] for names in named for name in names if name in self.instances
        ]
        everything = [*self.instances.values(), *self.around.machines]
        return {"Reservations": [{"Instances": found if named else everything}]}

    def describe_instance_status(self, *, InstanceIds: list[str]) -> Item:  # noqa: N803
        found = [
            {"InstanceId": name, "Events": self.events.get(name, []), **self.impaired.get(name, {})}
            for name in InstanceIds
        ]
        return {"InstanceStatuses": found}

    def describe_auto_scaling_instances(self, *, InstanceIds: list[str]) -> Item:  # noqa: N803
        found = [
            {"InstanceId": name, "AutoScalingGroupName": self.member_of[name]}
            for name in InstanceIds
            if name in self.member_of
        ]
        return {"AutoScalingInstances": found}

    def describe_auto_scaling_groups(self, *, AutoScalingGroupNames: Any, **_: Any) -> Item:  # noqa: N803
        return {"AutoScalingGroups": [self.groups[name] for name in AutoScalingGroupNames]}

    def describe_scaling_activities(self, *, AutoScalingGroupName: str, **_: Any) -> Item:  # noqa: N803
        """Return what a group has tried, the newest first."""
        assert AutoScalingGroupName in self.groups
        return {"Activities": self.activities}

    def describe_launch_template_versions(self, **given: Any) -> Item:
        """Return a group's template as it is asked for, or that it is gone."""
        (version,) = given["Versions"]
        if self.template is None:
            refuse("InvalidLaunchTemplateId.NotFound", "DescribeLaunchTemplateVersions")
        said = {"LaunchTemplateData": self.template, "VersionNumber": 1}
        return {"LaunchTemplateVersions": [said | {"Asked": version}]}

    def describe_nodegroup(self, *, clusterName: str, nodegroupName: str) -> Item:  # noqa: N803
        assert clusterName == "shop"
        return {"nodegroup": {"nodegroupName": nodegroupName, **self.node_groups[nodegroupName]}}

    def describe_volumes(self, *, Filters: list[Item]) -> Item:  # noqa: N803
        """Return disks by name, each as usual but for what is said of it, or all gp3 there is."""
        ((kind, wanted),) = ((each["Name"], each["Values"]) for each in Filters)
        if kind == "volume-type":
            return {"Volumes": [{"Size": size} for size in self.around.gib]}
        # Type and size are left to the class and the claim, where nothing else is said.
        usual = {"State": "in-use", "MultiAttachEnabled": False}
        disks, lost = self.around.disks, self.around.lost
        found = [{"VolumeId": n, **usual, **disks.get(n, {})} for n in wanted if n not in lost]
        return {"Volumes": found}

    def describe_volumes_modifications(self, *, Filters: list[Item]) -> Item:  # noqa: N803
        (wanted,) = (each["Values"] for each in Filters if each["Name"] == "volume-id")
        found = [each for each in self.modifications if each["VolumeId"] in wanted]
        return {"VolumesModifications": found}

    def describe_subnets(self, *, Filters: list[Item]) -> Item:  # noqa: N803
        (wanted,) = (each["Values"] for each in Filters)
        found = [
            {
                "SubnetId": name,
                "AvailabilityZone": zone,
                "AvailabilityZoneId": f"eun1-az{'abc'.find(zone[-1]) + 1}",
                "AvailableIpAddressCount": free,
                "VpcId": "vpc-1",
            }
            for name, (zone, free) in self.around.subnets.items()
            if name in wanted
        ]
        return {"Subnets": found}

    def list_aws_default_service_quotas(self, *, ServiceCode: str) -> Item:  # noqa: N803
        found = [
            {"QuotaName": name, "Value": value}
            for name, value in self.around.limits.items()
            if (name == DISKS) == (ServiceCode == "ebs")
        ]
        return {"Quotas": found}

    def describe_cluster(self, *, name: str) -> Item:
        if name != self.around.cluster["name"]:
            refuse("ResourceNotFoundException", "DescribeCluster")
        return {"cluster": self.around.cluster}

    def describe_target_groups(self, **_: Any) -> Item:
        if self.around.gone:
            refuse("TargetGroupNotFound", "DescribeTargetGroups")
        return {"TargetGroups": [self.around.group]}

    def get_queue_attributes(self, **_: Any) -> Item:
        said = {"QueueArn": "arn:aws:sqs:q", "MessageRetentionPeriod": str(self.kept_seconds)}
        more = {key: value for key, value in self.queue_attributes.items() if value is not None}
        if "Policy" in more:
            more["Policy"] = json.dumps(more["Policy"])
        return {"Attributes": said | more}

    def list_rule_names_by_target(self, *, NextToken: str = "0", **_: Any) -> Item:  # noqa: N803
        """Name a rule a page."""
        index = int(NextToken)
        following = {"NextToken": str(index + 1)} if index + 1 < len(self.rules) else {}
        return {"RuleNames": [str(index)] if index < len(self.rules) else [], **following}

    def list_targets_by_rule(self, *, Rule: str) -> Item:  # noqa: N803
        assert int(Rule) < len(self.rules)
        return {"Targets": [{"Id": "it", "Arn": "arn:aws:sqs:q", **self.target}]}

    def describe_rule(self, *, Name: str) -> Item:  # noqa: N803
        return {"EventPattern": json.dumps(self.rules[int(Name)]), "State": "ENABLED"}

    def describe_images(self, **given: Any) -> Item:
        """Return images of EC2's, or of ECR's where a repository is named."""
        if "repositoryName" not in given:
            return {"Images": self._left(given, "ImageId")}
        if refusal := self.registries.get(given["registryId"]):
            refuse(refusal, "DescribeImages")
        return {"imageDetails": [{}]}

    def describe_key(self, *, KeyId: str) -> Item:  # noqa: N803
        if "error" in self.key:
            refuse(self.key["error"], "DescribeKey")
        return {"KeyMetadata": {"KeyId": KeyId, "AWSAccountId": "111122223333", **self.key}}

    def get_instance_profile(self, *, InstanceProfileName: str) -> Item:  # noqa: N803
        if InstanceProfileName not in self.roles:
            refuse("NoSuchEntity", "GetInstanceProfile")
        role = {"RoleName": self.roles[InstanceProfileName], "CreateDate": self.role_made}
        return {"InstanceProfile": {"Roles": [role]}}

    def describe_access_entry(self, *, clusterName: str, principalArn: str) -> Item:  # noqa: N803
        assert clusterName == "shop"
        return {"accessEntry": {"principalArn": principalArn, **self.entry}}

    def describe_fargate_profile(self, *, fargateProfileName: str, **_: Any) -> Item:  # noqa: N803
        return {"fargateProfile": {"selectors": self.profiles[fargateProfileName]}}
