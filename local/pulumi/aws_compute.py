"""Launch templates: what an instance of a group is made of."""

from __future__ import annotations

from typing import Any

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    adapts,
    has_changed,
    pick,
    tag_list,
)
from local.pulumi.aws_network import retag_ec2, specification
from local.pulumi.provider import Existing, Resource, State
from local.shapes import coerce
from local.values import Properties

# What is about the template, not about the instances.
_OF_THE_TEMPLATE = frozenset(
    {"name", "namePrefix", "description", "tags", "tagsAll", "updateDefaultVersion"}
)
_SPELLED_OTHERWISE = {
    "vpcSecurityGroupIds": "SecurityGroupIds",
    "securityGroupNames": "SecurityGroups",
}


def template_data(aws: Aws, inputs: Properties) -> dict[str, Any]:
    """Return the launch template's data as EC2 takes it."""
    client = aws.client("ec2")
    operation = client.meta.service_model.operation_model("CreateLaunchTemplate")
    shape = operation.input_shape.members["LaunchTemplateData"]
    given = {k: v for k, v in inputs.items() if k not in _OF_THE_TEMPLATE}
    data: dict[str, Any] = coerce(
        shape, {k: v for k, v in given.items() if k not in _SPELLED_OTHERWISE}
    )
    data |= pick(given, _SPELLED_OTHERWISE)
    for interface, wanted in zip(
        data.get("NetworkInterfaces", []), given.get("networkInterfaces", []), strict=True
    ):
        if wanted.get("securityGroups"):
            interface["Groups"] = wanted["securityGroups"]
    specifications = [
        {"ResourceType": spec["resourceType"], "Tags": tag_list(spec.get("tags"))}
        for spec in given.get("tagSpecifications", [])
        if spec.get("tags")
    ]
    if specifications:
        data["TagSpecifications"] = specifications
    return data


@adapts("ec2/launchTemplate:LaunchTemplate")
class LaunchTemplateAdapter(Adapter):
    name_property = "name"
    deletion = CallById("ec2", "delete_launch_template", "LaunchTemplateId")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made = aws.client("ec2").create_launch_template(
            LaunchTemplateName=inputs["name"],
            LaunchTemplateData=template_data(aws, inputs),
            **pick(inputs, {"description": "VersionDescription"}),
            TagSpecifications=specification("launch-template", inputs),
        )["LaunchTemplate"]
        identity = made["LaunchTemplateId"]
        arn = aws.arn("ec2", f"launch-template/{identity}")
        return State(identity, {"arn": arn, "latestVersion": 1, "defaultVersion": 1})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        ec2, fresh = aws.client("ec2"), {}
        if has_changed(existing, inputs, *({*existing.inputs, *inputs} - {"tags", "tagsAll"})):
            made = ec2.create_launch_template_version(
                LaunchTemplateId=existing.id,
                LaunchTemplateData=template_data(aws, inputs),
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
