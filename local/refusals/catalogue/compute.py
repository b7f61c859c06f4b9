"""Groups of instances, what they are launched from, functions and Spark jobs."""

from __future__ import annotations

from local.refusals.calls import Parameters, call, enter
from local.refusals.catalogue.parameters import Inputs
from local.refusals.model import input_shape
from local.shapes import coerce


def _tag_specifications(inputs: Inputs) -> list[Parameters]:
    return [
        {
            "ResourceType": each["resourceType"],
            "Tags": [{"Key": k, "Value": v} for k, v in (each.get("tags") or {}).items()],
        }
        for each in inputs.get("tagSpecifications") or ()
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
    "tagSpecifications",
    "userData",
    "vpcSecurityGroupIds",
)


def _template(inputs: Inputs) -> Parameters:

    shape = input_shape("ec2", "CreateLaunchTemplate").members["LaunchTemplateData"]
    given = {key: inputs[key] for key in _TEMPLATE if key in inputs and key != "tagSpecifications"}
    if "vpcSecurityGroupIds" in given:
        given["securityGroupIds"] = given.pop("vpcSecurityGroupIds")
    return {
        "LaunchTemplateData": {
            **coerce(shape, given),
            "TagSpecifications": _tag_specifications(inputs),
        }
    }


def _group_tag(inputs: Inputs) -> Parameters:
    tag, group = inputs["tag"], inputs["autoscalingGroupName"]
    return {
        "Tags": [
            {
                "ResourceId": group,
                "ResourceType": "auto-scaling-group",
                "Key": tag["key"],
                "Value": tag["value"],
                "PropagateAtLaunch": tag["propagateAtLaunch"],
            }
        ]
    }


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
    call("autoscaling", "CreateOrUpdateTags", "tag", "autoscalingGroupName", build=_group_tag),
)
enter(
    "ec2/launchTemplate:LaunchTemplate",
    call(
        "ec2",
        "CreateLaunchTemplate",
        *_TEMPLATE,
        names={"name": "LaunchTemplateName", "description": "VersionDescription"},
        build=_template,
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
