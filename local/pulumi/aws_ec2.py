"""VPCs, the group that each comes with, launch templates, and what a role is attached."""

from __future__ import annotations

from local.pulumi.aws_adapter import (
    EC2_TAGS,
    Adapter,
    Aws,
    CallById,
    adapts,
    has_changed,
    missing,
    tag_list,
    tags_of,
)
from local.pulumi.provider import Existing, Resource, State
from local.refusals.calls import pick
from local.refusals.catalogue import template_data
from local.values import Properties

AWS_MANAGED = "arn:aws:iam::aws:policy/"


@adapts("ec2/vpc:Vpc")
class VpcAdapter(Adapter):
    replaces = frozenset({"cidrBlock", "instanceTenancy"})
    lookup = CallById("ec2", "describe_vpcs", "VpcIds", listed=True)
    deletion = CallById("ec2", "delete_vpc", "VpcId")
    tagging = EC2_TAGS

    @staticmethod
    def _attributes(aws: Aws, vpc: str, inputs: Properties) -> None:
        for name in ("enableDnsSupport", "enableDnsHostnames"):
            if inputs.get(name) is not None:
                told = {name[0].upper() + name[1:]: {"Value": inputs[name]}}
                aws.client("ec2").modify_vpc_attribute(VpcId=vpc, **told)

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        ec2 = aws.client("ec2")
        vpc = self.make(aws, inputs)["Vpc"]["VpcId"]
        self._attributes(aws, vpc, inputs)
        here = [{"Name": "vpc-id", "Values": [vpc]}]
        tables = ec2.describe_route_tables(Filters=here)["RouteTables"]
        groups = ec2.describe_security_groups(Filters=here)["SecurityGroups"]
        return State(
            vpc,
            {
                "arn": aws.arn("ec2", f"vpc/{vpc}"),
                "ownerId": aws.account,
                "mainRouteTableId": tables[0]["RouteTableId"],
                "defaultRouteTableId": tables[0]["RouteTableId"],
                "defaultSecurityGroupId": groups[0]["GroupId"],
                "enableDnsSupport": inputs.get("enableDnsSupport", True),
            },
        )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        self._attributes(aws, existing.id, inputs)
        return super().update(aws, existing, inputs)


@adapts("ec2/defaultSecurityGroup:DefaultSecurityGroup")
class DefaultSecurityGroupAdapter(Adapter):
    """The group a VPC comes with, adopted and emptied; it is never made, and goes with its VPC."""

    replaces = frozenset({"vpcId"})
    tagging = EC2_TAGS

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        ec2 = aws.client("ec2")
        here = [
            {"Name": "vpc-id", "Values": [inputs["vpcId"]]},
            {"Name": "group-name", "Values": ["default"]},
        ]
        (group,) = ec2.describe_security_groups(Filters=here)["SecurityGroups"]
        identity = group["GroupId"]
        for revoke, rules in (
            (ec2.revoke_security_group_ingress, group["IpPermissions"]),
            (ec2.revoke_security_group_egress, group["IpPermissionsEgress"]),
        ):
            if rules:
                revoke(GroupId=identity, IpPermissions=rules)
        if tags_of(inputs):
            ec2.create_tags(Resources=[identity], Tags=tag_list(tags_of(inputs)))
        arn = aws.arn("ec2", f"security-group/{identity}")
        return State(identity, {"arn": arn, "ownerId": aws.account, "name": "default"})


@adapts("ec2/launchTemplate:LaunchTemplate")
class LaunchTemplateAdapter(Adapter):
    name_property = "name"
    deletion = CallById("ec2", "delete_launch_template", "LaunchTemplateId")
    tagging = EC2_TAGS

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        identity = self.make(aws, inputs)["LaunchTemplate"]["LaunchTemplateId"]
        arn = aws.arn("ec2", f"launch-template/{identity}")
        return State(identity, {"arn": arn, "latestVersion": 1, "defaultVersion": 1})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        ec2, fresh = aws.client("ec2"), super().update(aws, existing, inputs)
        if has_changed(existing, inputs, *({*existing.inputs, *inputs} - {"tags", "tagsAll"})):
            made = ec2.create_launch_template_version(
                LaunchTemplateId=existing.id,
                LaunchTemplateData=template_data(inputs),
                **pick(inputs, {"description": "VersionDescription"}),
            )["LaunchTemplateVersion"]
            fresh["latestVersion"] = made["VersionNumber"]
            if inputs.get("updateDefaultVersion"):
                ec2.modify_launch_template(
                    LaunchTemplateId=existing.id, DefaultVersion=str(made["VersionNumber"])
                )
                fresh["defaultVersion"] = made["VersionNumber"]
        return fresh

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        found = aws.client("ec2").describe_launch_templates(LaunchTemplateIds=[existing.id])
        template = found["LaunchTemplates"][0]
        return {"latestVersion": template["LatestVersionNumber"]}


@adapts("iam/rolePolicyAttachment:RolePolicyAttachment")
class RolePolicyAttachmentAdapter(Adapter):
    replaces = frozenset({"role", "policyArn"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        try:
            self.make(aws, inputs)
        except Exception as error:
            # moto lacks some of AWS's own, and nothing in the twin evaluates those.
            if not (inputs["policyArn"].startswith(AWS_MANAGED) and missing(error)):
                raise
        return State(f"{inputs['role']}/{inputs['policyArn']}", {})

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("iam").detach_role_policy(
            RoleName=existing.inputs["role"], PolicyArn=existing.inputs["policyArn"]
        )
