"""Groups of instances, what they are launched from, functions and Spark jobs."""

from __future__ import annotations

from collections.abc import Iterable

from local.refusals.calls import Parameters, call, enter
from local.refusals.catalogue.parameters import Inputs
from local.refusals.model import input_shape
from local.shapes import coerce


def _tag_specifications(inputs: Inputs) -> list[Parameters]:
    return [
        {
            "ResourceType": each["resourceType"],
            "Tags": [{"Key": k, "Value": str(v)} for k, v in each["tags"].items()],
        }
        for each in inputs.get("tagSpecifications") or ()
        if each.get("tags")
    ]


_TEMPLATE = (
    "blockDeviceMappings",
    "capacityReservationSpecification",
    "cpuOptions",
    "creditSpecification",
    "disableApiStop",
    "disableApiTermination",
    "ebsOptimized",
    "hibernationOptions",
    "iamInstanceProfile",
    "imageId",
    "instanceInitiatedShutdownBehavior",
    "instanceMarketOptions",
    "instanceRequirements",
    "instanceType",
    "keyName",
    "metadataOptions",
    "monitoring",
    "networkInterfaces",
    "placement",
    "privateDnsNameOptions",
    "securityGroupNames",
    "tagSpecifications",
    "userData",
    "vpcSecurityGroupIds",
)


def template_data(inputs: Inputs) -> Parameters:
    """Return a launch template's data: what an instance is made of."""
    shape = input_shape("ec2", "CreateLaunchTemplate").members["LaunchTemplateData"]
    spelled = {"vpcSecurityGroupIds": "securityGroupIds", "securityGroupNames": "securityGroups"}
    given = {
        spelled.get(key, key): inputs[key]
        for key in _TEMPLATE
        if key in inputs and key != "tagSpecifications"
    }
    if "networkInterfaces" in given:
        given["networkInterfaces"] = [
            {**each, "groups": each.get("securityGroups")} for each in given["networkInterfaces"]
        ]
    tagged = _tag_specifications(inputs)
    return {**coerce(shape, given), **({"TagSpecifications": tagged} if tagged else {})}


def group_tags(group: str, tags: Iterable[Inputs]) -> list[Parameters]:
    """Return tags of a group as the calls that put them and take them off have them."""
    return [
        {
            "ResourceId": group,
            "ResourceType": "auto-scaling-group",
            "Key": tag["key"],
            "Value": str(tag.get("value", "")),
            "PropagateAtLaunch": bool(tag.get("propagateAtLaunch")),
        }
        for tag in tags
    ]


def group_tag(inputs: Inputs) -> Parameters:
    """Return a tag that is a resource of its own as those calls take it."""
    return {"Tags": group_tags(inputs["autoscalingGroupName"], [inputs["tag"]])}


enter(
    "autoscaling/group:Group",
    call(
        "autoscaling",
        "CreateAutoScalingGroup",
        "vpcZoneIdentifiers",
        names={"name": "AutoScalingGroupName"},
        build=lambda i: {"VPCZoneIdentifier": ",".join(i.get("vpcZoneIdentifiers") or ())},
    ),
    call(
        "autoscaling",
        "SuspendProcesses",
        names={"name": "AutoScalingGroupName", "suspendedProcesses": "ScalingProcesses"},
        where=frozenset({"suspendedProcesses"}),
    ),
)
enter(
    "autoscaling/lifecycleHook:LifecycleHook",
    call("autoscaling", "PutLifecycleHook", names={"name": "LifecycleHookName"}),
)
enter(
    "autoscaling/tag:Tag",
    call("autoscaling", "CreateOrUpdateTags", "tag", "autoscalingGroupName", build=group_tag),
)
enter(
    "ec2/launchTemplate:LaunchTemplate",
    call(
        "ec2",
        "CreateLaunchTemplate",
        *_TEMPLATE,
        names={"name": "LaunchTemplateName", "description": "VersionDescription"},
        tagged="launch-template",
        build=lambda i: {"LaunchTemplateData": template_data(i)},
    ),
    updateDefaultVersion="the provider's own: which version becomes the default",
)
enter(
    "emrserverless/application:Application",
    call(
        "emr-serverless",
        "CreateApplication",
        build=lambda _: {"clientToken": "terraform-20260101000000000000000001"},
    ),
)
enter("lambda/eventSourceMapping:EventSourceMapping", call("lambda", "CreateEventSourceMapping"))
enter(
    "lambda/function:Function",
    call(
        "lambda",
        "CreateFunction",
        "code",
        names={"name": "FunctionName"},
        # The zip itself is measured by limits.
        build=lambda _: {"Code": {}},
    ),
    call(
        "lambda",
        "PutFunctionConcurrency",
        names={"name": "FunctionName"},
        where=frozenset({"reservedConcurrentExecutions"}),
    ),
    sourceCodeHash="the provider's own: what it compares the zip by",
)
enter(
    "lambda/functionUrl:FunctionUrl",
    call("lambda", "CreateFunctionUrlConfig", names={"authorizationType": "AuthType"}),
)
enter(
    "lambda/permission:Permission",
    call(
        "lambda",
        "AddPermission",
        names={"function": "FunctionName"},
        build=lambda i: {
            "StatementId": i.get("statementId") or "terraform-20260101000000000000000001"
        },
    ),
)
