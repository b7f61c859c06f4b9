"""What EC2 answers of the network, images and keys below other people's clusters: all is there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from tests.unit.cli.survey.manifests import Item

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
