"""The account and region around other people's clusters, with nothing short or announced."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from cli.survey.surroundings import DISKS as DISKS_QUOTA
from core.ground.instances import QUOTA_OF_FAMILY, STANDARD_QUOTA
from tests.unit.cli.survey.manifests import Item

if TYPE_CHECKING:
    from tests.unit.cli.survey.worlds import World

DISKS = DISKS_QUOTA.name
CLUSTER = "arn:aws:eks:eu-north-1:111122223333:cluster/shop"
BALANCER = "arn:aws:elasticloadbalancing:eu-north-1:111122223333:loadbalancer/net/shop/0a1b"
TARGET_GROUP = "arn:aws:elasticloadbalancing:eu-north-1:111122223333:targetgroup/boot/0a1b"
FAR = datetime(2999, 1, 1, tzinfo=UTC)


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

    def describe_subnets(self, _: World, *, Filters: list[Item]) -> Item:  # noqa: N803
        (wanted,) = (each["Values"] for each in Filters)
        return {
            "Subnets": [
                {
                    "SubnetId": name,
                    "AvailabilityZone": zone,
                    "AvailabilityZoneId": f"eun1-az{'abc'.find(zone[-1]) + 1}",
                    "AvailableIpAddressCount": free,
                    "VpcId": "vpc-1",
                }
                for name, (zone, free) in self.subnets.items()
                if name in wanted
            ]
        }

    def describe_instances(self, world: World, **_: Any) -> Item:
        return {"Reservations": [{"Instances": [*world.instances.values(), *self.machines]}]}

    def describe_volumes(self, _: World, *, Filters: list[Item]) -> Item:  # noqa: N803
        """Return disks by name, each as usual but for what is said of it, or all gp3 there is."""
        ((kind, wanted),) = ((each["Name"], each["Values"]) for each in Filters)
        if kind == "volume-type":
            return {"Volumes": [{"Size": size} for size in self.gib]}
        # Type and size are left to the class and the claim, where nothing else is said.
        usual = {"State": "in-use", "MultiAttachEnabled": False}
        return {
            "Volumes": [
                {"VolumeId": name, **usual, **self.disks.get(name, {})}
                for name in wanted
                if name not in self.lost
            ]
        }

    def list_aws_default_service_quotas(self, _: World, *, ServiceCode: str) -> Item:  # noqa: N803
        of_disks = ServiceCode == "ebs"
        return {
            "Quotas": [
                {"QuotaName": name, "Value": value}
                for name, value in self.limits.items()
                if (name == DISKS) == of_disks
            ]
        }

    def list_service_quotas(self, _: World, **__: Any) -> Item:
        return {"Quotas": []}

    def describe_cluster(self, name: str) -> Item:
        if name != self.cluster["name"]:
            error = {"Error": {"Code": "ResourceNotFoundException", "Message": "no"}}
            raise ClientError(error, "DescribeCluster")
        return {"cluster": self.cluster}

    def describe_cluster_versions(self, _: World, **__: Any) -> Item:
        return {"clusterVersions": self.versions}

    def list_insights(self, _: World, **__: Any) -> Item:
        return {"insights": self.insights}

    def list_managed_resources(self, _: World) -> Item:
        return {"items": self.managed}

    def describe_events(self, _: World, **__: Any) -> Item:
        return {"events": self.events}

    def describe_affected_entities(self, _: World, **__: Any) -> Item:
        return {"entities": self.entities}

    def describe_target_groups(self, **_: Any) -> Item:
        if self.gone:
            error = {"Error": {"Code": "TargetGroupNotFound", "Message": "no"}}
            raise ClientError(error, "DescribeTargetGroups")
        return {"TargetGroups": [self.group]}

    def attributes(self, _: str) -> Item:
        return {"Attributes": [{"Key": key, "Value": value} for key, value in self.said.items()]}


class AwsAnswers:
    """One client for every service of the account that a world is in."""

    groups: dict[str, Item]
    hooks: dict[str, list[Item]]
    policies: dict[str, list[Item]]
    actions: dict[str, list[Item]]
    instances: dict[str, Item]
    member_of: dict[str, str]
    node_groups: dict[str, Item]
    rules: list[Item]
    events: dict[str, list[Item]]
    refreshes: dict[str, list[Item]]
    kept_seconds: int
    target: Item
    queue_attributes: Item
    impaired: dict[str, Item]
    around: Around
    # What the launch templates of all groups say; None: they are gone.
    template: Item | None
    launch_configurations: list[Item]
    modifications: list[Item]
    activities: list[Item]

    def client(self, service: str, region: str | None) -> Any:
        assert region in (None, "eu-north-1")
        return self

    def describe_instances(self, *, Filters: list[Item]) -> Item:  # noqa: N803
        (wanted,) = (each["Values"] for each in Filters if each["Name"] == "instance-id")
        found = [self.instances[name] for name in wanted if name in self.instances]
        return {"Reservations": [{"Instances": found}]}

    def describe_instance_status(self, *, InstanceIds: list[str]) -> Item:  # noqa: N803
        found = [
            {"InstanceId": name, "Events": self.events.get(name, []), **self.impaired.get(name, {})}
            for name in InstanceIds
        ]
        return {"InstanceStatuses": found}

    def describe_auto_scaling_instances(self, *, InstanceIds: list[str]) -> Item:  # noqa: N803
        return {
            "AutoScalingInstances": [
                {"InstanceId": name, "AutoScalingGroupName": self.member_of[name]}
                for name in InstanceIds
                if name in self.member_of
            ]
        }

    def describe_auto_scaling_groups(self, *, AutoScalingGroupNames: Any, **_: Any) -> Item:  # noqa: N803
        return {"AutoScalingGroups": [self.groups[name] for name in AutoScalingGroupNames]}

    def describe_scaling_activities(self, *, AutoScalingGroupName: str, **_: Any) -> Item:  # noqa: N803
        """Return what a group has tried, the newest first."""
        assert AutoScalingGroupName in self.groups
        return {"Activities": self.activities}

    def describe_lifecycle_hooks(self, *, AutoScalingGroupName: str) -> Item:  # noqa: N803
        return {"LifecycleHooks": self.hooks.get(AutoScalingGroupName, [])}

    def can_paginate(self, call: str) -> bool:
        return call != "describe_key_pairs"

    def get_paginator(self, call: str) -> Any:
        world = self

        class Pages:
            def paginate(self, **given: Any) -> list[Item]:
                if hasattr(Around, call):
                    return [getattr(world.around, call)(world, **given)]
                return [getattr(world, call)(**given)]

        return Pages()

    def describe_policies(self, *, AutoScalingGroupName: str) -> Item:  # noqa: N803
        return {"ScalingPolicies": self.policies.get(AutoScalingGroupName, [])}

    def describe_scheduled_actions(self, *, AutoScalingGroupName: str) -> Item:  # noqa: N803
        return {"ScheduledUpdateGroupActions": self.actions.get(AutoScalingGroupName, [])}

    def describe_instance_refreshes(self, *, AutoScalingGroupName: str) -> Item:  # noqa: N803
        return {"InstanceRefreshes": self.refreshes.get(AutoScalingGroupName, [])}

    def describe_launch_template_versions(self, **given: Any) -> Item:
        """Return a group's template as it is asked for, or that it is gone."""
        (version,) = given["Versions"]
        if self.template is None:
            error = {"Error": {"Code": "InvalidLaunchTemplateId.NotFound", "Message": "no"}}
            raise ClientError(error, "DescribeLaunchTemplateVersions")
        said = {"LaunchTemplateData": self.template, "VersionNumber": 1}
        return {"LaunchTemplateVersions": [said | {"Asked": version}]}

    def describe_launch_configurations(self, **_: Any) -> Item:
        return {"LaunchConfigurations": self.launch_configurations}

    def describe_volumes_modifications(self, *, Filters: list[Item]) -> Item:  # noqa: N803
        (wanted,) = (each["Values"] for each in Filters if each["Name"] == "volume-id")
        found = [each for each in self.modifications if each["VolumeId"] in wanted]
        return {"VolumesModifications": found}

    def describe_nodegroup(self, *, clusterName: str, nodegroupName: str) -> Item:  # noqa: N803
        assert clusterName == "shop"
        return {"nodegroup": {"nodegroupName": nodegroupName, **self.node_groups[nodegroupName]}}

    def describe_cluster(self, *, name: str) -> Item:
        return self.around.describe_cluster(name)

    def describe_target_groups(self, **given: Any) -> Item:
        return self.around.describe_target_groups(**given)

    def describe_target_group_attributes(self, *, TargetGroupArn: str) -> Item:  # noqa: N803
        return self.around.attributes(TargetGroupArn)

    def describe_load_balancer_attributes(self, *, LoadBalancerArn: str) -> Item:  # noqa: N803
        return self.around.attributes(LoadBalancerArn)

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


ROLE = "arn:aws:iam::111122223333:role/aws-service-role/autoscaling.amazonaws.com/"
SERVICE_ROLE = f"{ROLE}AWSServiceRoleForAutoScaling"


class AwsWays:
    """Route tables with a NAT gateway per zone, endpoints, images, keys, Fargate profiles."""

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

    def describe_route_tables(self, **_: Any) -> Item:
        return {
            "RouteTables": [
                {
                    "RouteTableId": f"rtb-{letter}",
                    "VpcId": "vpc-1",
                    "Routes": routes,
                    "Associations": [{"SubnetId": f"subnet-{letter}", "Main": False}],
                }
                for letter, routes in self.routes.items()
            ]
        }

    def describe_nat_gateways(self, **_: Any) -> Item:
        return {
            "NatGateways": [
                {"NatGatewayId": name, "State": "available", "SubnetId": f"subnet-out-{letter}"}
                for name, letter in self.nats.items()
            ]
        }

    def describe_vpc_endpoints(self, **_: Any) -> Item:
        return {"VpcEndpoints": self.endpoints}

    def describe_volume_status(self, **_: Any) -> Item:
        return {"VolumeStatuses": self.checked}

    def describe_snapshots(self, **_: Any) -> Item:
        return {"Snapshots": self.snapshots}

    def describe_images(self, **given: Any) -> Item:
        """Return images of EC2's, or of ECR's where a repository is named."""
        if "repositoryName" in given:
            return self._of_ecr(given["registryId"])
        return {"Images": self._left(given, "ImageId")}

    def _of_ecr(self, registry: str) -> Item:
        if registry in self.registries:
            error = {"Error": {"Code": self.registries[registry], "Message": "no"}}
            raise ClientError(error, "DescribeImages")
        return {"imageDetails": [{}]}

    def describe_pull_through_cache_rules(self, **_: Any) -> Item:
        return {"pullThroughCacheRules": [{"ecrRepositoryPrefix": each} for each in self.cached]}

    def describe_security_groups(self, **given: Any) -> Item:
        return {"SecurityGroups": self._left(given, "GroupId")}

    def describe_key_pairs(self, **given: Any) -> Item:
        return {"KeyPairs": self._left(given, "KeyName")}

    def _left(self, given: Item, key: str) -> list[Item]:
        (wanted,) = (each["Values"] for each in given["Filters"])
        return [{key: name} for name in wanted if name not in self.vanished]

    def describe_key(self, *, KeyId: str) -> Item:  # noqa: N803
        if "error" in self.key:
            error = {"Error": {"Code": self.key["error"], "Message": "no"}}
            raise ClientError(error, "DescribeKey")
        return {"KeyMetadata": {"KeyId": KeyId, "AWSAccountId": "111122223333", **self.key}}

    def get_key_policy(self, **_: Any) -> Item:
        return {"Policy": json.dumps(self.key_policy)}

    def list_grants(self, **_: Any) -> Item:
        return {"Grants": self.grants}

    def get_instance_profile(self, *, InstanceProfileName: str) -> Item:  # noqa: N803
        if InstanceProfileName not in self.roles:
            error = {"Error": {"Code": "NoSuchEntity", "Message": "no"}}
            raise ClientError(error, "GetInstanceProfile")
        role = {"RoleName": self.roles[InstanceProfileName], "CreateDate": self.role_made}
        return {"InstanceProfile": {"Roles": [role]}}

    def list_access_entries(self, **_: Any) -> Item:
        return {
            "accessEntries": [f"arn:aws:iam::111122223333:role/{each}" for each in self.entries]
        }

    def describe_access_entry(self, *, clusterName: str, principalArn: str) -> Item:  # noqa: N803
        assert clusterName == "shop"
        return {"accessEntry": {"principalArn": principalArn, **self.entry}}

    def list_fargate_profiles(self, **_: Any) -> Item:
        return {"fargateProfileNames": list(self.profiles)}

    def describe_fargate_profile(self, *, fargateProfileName: str, **_: Any) -> Item:  # noqa: N803
        return {"fargateProfile": {"selectors": self.profiles[fargateProfileName]}}
