"""Security groups and their rules, inline or one by one."""

from __future__ import annotations

from typing import Any, ClassVar

from local.pulumi.aws_adapter import Adapter, Aws, CallById, adapts, tag_list, tags_of
from local.pulumi.aws_network import retag_ec2
from local.pulumi.provider import Existing, Resource, State
from local.refusals.catalogue.network import rule_parameters
from local.refusals.documents import as_list
from local.values import Properties


def _permission(rule: Properties) -> dict[str, Any]:
    """Return the API's form of one inline rule of a security group."""
    protocol = str(rule.get("protocol", "-1"))
    permission: dict[str, Any] = {"IpProtocol": protocol}
    if protocol != "-1":
        permission |= {"FromPort": int(rule["fromPort"]), "ToPort": int(rule["toPort"])}
    note = {"Description": rule["description"]} if rule.get("description") else {}
    ranges = [{"CidrIp": cidr, **note} for cidr in as_list(rule.get("cidrBlocks"))]
    pairs = [{"GroupId": group, **note} for group in as_list(rule.get("securityGroups"))]
    if ranges:
        permission["IpRanges"] = ranges
    if pairs:
        permission["UserIdGroupPairs"] = pairs
    return permission


_OPEN_EGRESS = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]


def _change(aws: Aws, verb: str, direction: str, group: str, rules: list[Properties]) -> None:
    """Authorize or revoke inline rules; `self` in a rule means the group itself."""
    if not rules:
        return
    permissions = []
    for rule in rules:
        own = [group] if rule.get("self") else []
        with_self = {**rule, "securityGroups": [*as_list(rule.get("securityGroups")), *own]}
        permissions.append(_permission(with_self))
    call = getattr(aws.client("ec2"), f"{verb}_security_group_{direction}")
    call(GroupId=group, IpPermissions=permissions)


@adapts("ec2/securityGroup:SecurityGroup")
class SecurityGroupAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"vpcId", "description"})
    deletion = CallById("ec2", "delete_security_group", "GroupId")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        ec2 = aws.client("ec2")
        description = inputs.get("description") or "Managed by Pulumi"
        group = self.make(aws, inputs, Description=description)["GroupId"]
        # The real provider removes the rule AWS adds, so that a group allows what is written.
        ec2.revoke_security_group_egress(GroupId=group, IpPermissions=_OPEN_EGRESS)
        for direction in ("ingress", "egress"):
            _change(aws, "authorize", direction, group, as_list(inputs.get(direction)))
        arn = aws.arn("ec2", f"security-group/{group}")
        return State(group, {"arn": arn, "ownerId": aws.account, "description": description})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        for direction in ("ingress", "egress"):
            old, new = as_list(existing.inputs.get(direction)), as_list(inputs.get(direction))
            gone = [rule for rule in old if rule not in new]
            _change(aws, "revoke", direction, existing.id, gone)
            fresh = [rule for rule in new if rule not in old]
            _change(aws, "authorize", direction, existing.id, fresh)
        retag_ec2(aws, existing, inputs)
        return {}


@adapts("ec2/defaultSecurityGroup:DefaultSecurityGroup")
class DefaultSecurityGroupAdapter(Adapter):
    """The group a VPC comes with, adopted and emptied; it is never made, and goes with its VPC."""

    replaces = frozenset({"vpcId"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        ec2 = aws.client("ec2")
        here = [
            {"Name": "vpc-id", "Values": [inputs["vpcId"]]},
            {"Name": "group-name", "Values": ["default"]},
        ]
        (group,) = ec2.describe_security_groups(Filters=here)["SecurityGroups"]
        identity = group["GroupId"]
        if group["IpPermissions"]:
            ec2.revoke_security_group_ingress(
                GroupId=identity, IpPermissions=group["IpPermissions"]
            )
        if group["IpPermissionsEgress"]:
            ec2.revoke_security_group_egress(
                GroupId=identity, IpPermissions=group["IpPermissionsEgress"]
            )
        for direction in ("ingress", "egress"):
            _change(aws, "authorize", direction, identity, as_list(inputs.get(direction)))
        if tags_of(inputs):
            ec2.create_tags(Resources=[identity], Tags=tag_list(tags_of(inputs)))
        arn = aws.arn("ec2", f"security-group/{identity}")
        return State(identity, {"arn": arn, "ownerId": aws.account, "name": "default"})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        retag_ec2(aws, existing, inputs)
        return {}


class _Rule(Adapter):
    """One rule as a resource of its own."""

    direction: ClassVar[str]
    replaces = frozenset(
        {
            "securityGroupId",
            "cidrIpv4",
            "cidrIpv6",
            "fromPort",
            "toPort",
            "ipProtocol",
            "referencedSecurityGroupId",
        }
    )

    def _call(self, aws: Aws, verb: str) -> Any:
        return getattr(aws.client("ec2"), f"{verb}_security_group_{self.direction}")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:
        made = self._call(aws, "authorize")(**rule_parameters(inputs))
        rules = made.get("SecurityGroupRules") or [{}]
        identity = rules[0].get("SecurityGroupRuleId") or f"sgr-{resource.token(17)}"
        return State(
            identity,
            {
                "securityGroupRuleId": identity,
                "arn": aws.arn("ec2", f"security-group-rule/{identity}"),
            },
        )

    def delete(self, aws: Aws, existing: Existing) -> None:
        self._call(aws, "revoke")(**rule_parameters(existing.inputs))


@adapts("vpc/securityGroupIngressRule:SecurityGroupIngressRule")
class IngressRule(_Rule):
    direction = "ingress"


@adapts("vpc/securityGroupEgressRule:SecurityGroupEgressRule")
class EgressRule(_Rule):
    direction = "egress"
