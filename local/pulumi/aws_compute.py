"""Launch templates: what an instance of a group is made of."""

from __future__ import annotations

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    adapts,
    has_changed,
)
from local.pulumi.aws_network import retag_ec2
from local.pulumi.provider import Existing, Resource, State
from local.refusals.catalogue.compute import template_data
from local.refusals.catalogue.parameters import pick
from local.values import Properties


@adapts("ec2/launchTemplate:LaunchTemplate")
class LaunchTemplateAdapter(Adapter):
    name_property = "name"
    deletion = CallById("ec2", "delete_launch_template", "LaunchTemplateId")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        identity = self.make(aws, inputs)["LaunchTemplate"]["LaunchTemplateId"]
        arn = aws.arn("ec2", f"launch-template/{identity}")
        return State(identity, {"arn": arn, "latestVersion": 1, "defaultVersion": 1})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        ec2, fresh = aws.client("ec2"), {}
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
        retag_ec2(aws, existing, inputs)
        return fresh

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        found = aws.client("ec2").describe_launch_templates(LaunchTemplateIds=[existing.id])
        template = found["LaunchTemplates"][0]
        return {"latestVersion": template["LatestVersionNumber"]}
