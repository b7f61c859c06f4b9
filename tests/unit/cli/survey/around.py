"""The account and region around other people's clusters, in which nothing is short or announced."""

from __future__ import annotations

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
