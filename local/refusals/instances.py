"""Refuses what launches and groups do not take: disks, templates, sizes, EKS's node groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals.limits import first_about, first_of, limit, outside
from local.refusals.model import words_of
from local.refusals.refusal import Refusal, Wanted

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/"
_EKS = "https://docs.aws.amazon.com/eks/latest/"
# Graviton families, as EC2 names them.
_ARM = re.compile(r"([a-z]+\d+g[a-z]*|a1)\.")
_GPU = re.compile(r"(g\d|gr\d|p\d)[a-z0-9-]*\.")
# Types of volumes that take no IOPS, and the smallest of those that spin.
_WITHOUT_IOPS = frozenset({"gp2", "sc1", "st1", "standard"})
_SPINNING_GIB = (125, 16_384)
_POLICIES = frozenset(
    {
        *("AllocationStrategy", "ClosestToNextInstanceHour", "Default", "NewestInstance"),
        *("OldestInstance", "OldestLaunchConfiguration", "OldestLaunchTemplate"),
    }
)
_PROCESSES = frozenset(
    {
        *("AddToLoadBalancer", "AlarmNotification", "AZRebalance", "HealthCheck"),
        *("InstanceRefresh", "Launch", "ReplaceUnhealthy", "ScheduledActions", "Terminate"),
    }
)
# EC2 Auto Scaling user guide, "Auto Scaling groups with multiple instance types".
OVERRIDES = 40
# EC2 Auto Scaling user guide, "Quotas".
TARGET_GROUPS = 50
_A_DAY, _A_YEAR = 86_400, 31_536_000


@limit("ec2/launchTemplate:LaunchTemplate", source=f"{_EC2}API_EbsBlockDevice.html")
def disks_of_a_template(wanted: Wanted) -> Iterator[Refusal]:
    """What each type of volume is given and not given; a device once."""
    mappings = wanted.inputs.get("blockDeviceMappings") or ()
    for mapping in mappings:
        yield from _disk(mapping.get("ebs") or {})
    for device, count in Counter(each.get("deviceName") for each in mappings).items():
        if count > 1:
            message = f"The device '{device}' is used in more than one block-device mapping"
            code, at = "InvalidBlockDeviceMapping", "blockDeviceMappings"
            yield Refusal("RunInstances", code, message, at)


def _disk(volume: Mapping[str, Any]) -> Iterator[Refusal]:
    kind, iops = volume.get("volumeType"), volume.get("iops")
    size, key = volume.get("volumeSize"), volume.get("kmsKeyId")
    at = "blockDeviceMappings"
    yield from first_about(
        "RunInstances",
        "InvalidParameterCombination",
        at,
        (
            kind in _WITHOUT_IOPS and iops is not None,
            f"The parameter iops is not supported for {kind} volumes.",
        ),
        (
            kind in {"io1", "io2"} and iops is None,
            f"The parameter iops must be specified for {kind} volumes.",
        ),
        (
            kind is not None and kind != "gp3" and volume.get("throughput") is not None,
            f"The parameter throughput is not supported for {kind} volumes.",
        ),
        (
            kind in {"st1", "sc1"} and outside(size, *_SPINNING_GIB),
            f"Volume of {size}GiB is too small for volume type {kind}; minimum is 125 GiB.",
        ),
        (
            key and str(volume.get("encrypted")).lower() != "true",
            "The parameter KmsKeyId requires the parameter Encrypted to be set.",
        ),
    )


@limit("ec2/launchTemplate:LaunchTemplate", source=f"{_EC2}API_RequestLaunchTemplateData.html")
def image_and_metadata_of_a_template(wanted: Wanted) -> Iterator[Refusal]:
    """An image by its id, 64 hops at most, tags once per kind of resource."""
    image = str(wanted.inputs.get("imageId") or "ami-00000000")
    hops = (wanted.inputs.get("metadataOptions") or {}).get("httpPutResponseHopLimit")
    kinds = [each.get("resourceType") for each in wanted.inputs.get("tagSpecifications") or ()]
    if re.fullmatch(r"ami-[0-9a-f]{8}([0-9a-f]{9})?|resolve:ssm:\S+", image) is None:
        code, message = "InvalidAMIID.Malformed", f'Invalid id: "{image}" (expecting "ami-...")'
        yield Refusal("CreateLaunchTemplate", code, message, "imageId")
    yield from first_of(
        "CreateLaunchTemplate",
        "InvalidParameterValue",
        (
            outside(hops, 1, 64),
            f"Invalid value '{hops}' for HttpPutResponseHopLimit; it is 1 to 64.",
            "metadataOptions",
        ),
        (
            len(set(kinds)) < len(kinds),
            "Tag specification resource type can only be specified once.",
            "tagSpecifications",
        ),
    )


@limit(
    "autoscaling/group:Group",
    source=f"{_SCALING}APIReference/API_CreateAutoScalingGroup.html",
)
def parts_of_a_group(wanted: Wanted) -> Iterator[Refusal]:
    """What it launches and where, words that there are, a maintenance policy in full."""
    inputs = wanted.inputs
    launches = [
        key
        for key in ("launchConfiguration", "launchTemplate", "mixedInstancesPolicy")
        if inputs.get(key)
    ]
    places = ("vpcZoneIdentifiers", "availabilityZones")
    policy = inputs.get("instanceMaintenancePolicy") or {}
    lifetime = inputs.get("maxInstanceLifetime")
    unknown = [e for e in inputs.get("terminationPolicies") or () if not _is_policy(str(e))]
    processes = set(inputs.get("suspendedProcesses") or ()) - _PROCESSES
    tags = inputs.get("tags") or ()
    keys = [each["key"] for each in tags] if isinstance(tags, list | tuple) else []
    yield from first_of(
        "CreateAutoScalingGroup",
        "ValidationError",
        (
            len(launches) != 1,
            (
                "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, "
                "InstanceId or MixedInstancesPolicy parameter."
            ),
            "launchTemplate",
        ),
        (
            not any(inputs.get(key) for key in places),
            "At least one Availability Zone or VPC Subnet is required.",
            "vpcZoneIdentifiers",
        ),
        (
            policy and len([each for each in policy.values() if each is not None]) == 1,
            "MinHealthyPercentage and MaxHealthyPercentage must both be specified.",
            "instanceMaintenancePolicy",
        ),
        (
            lifetime and outside(lifetime, _A_DAY, _A_YEAR),
            f"Maximum instance lifetime must be 0 or between {_A_DAY} and {_A_YEAR} seconds.",
            "maxInstanceLifetime",
        ),
        (unknown, f"{unknown[:1]} is not a valid termination policy.", "terminationPolicies"),
        (processes, f"Unknown process {sorted(processes)[:1]}.", "suspendedProcesses"),
        (len(set(keys)) < len(keys), "Duplicate tag keys found.", "tags"),
        (
            len(inputs.get("targetGroupArns") or ()) > TARGET_GROUPS,
            f"Cannot have more than {TARGET_GROUPS} target groups per Auto Scaling group.",
            "targetGroupArns",
        ),
        (
            any(outside(inputs.get(key), 0, 10_000) for key in ("minSize", "maxSize")),
            "Min and max size must be greater than or equal to 0.",
            "minSize",
        ),
        (
            outside(inputs.get("healthCheckGracePeriod"), 0, 2**31 - 1),
            "HealthCheckGracePeriod must be greater than or equal to 0.",
            "healthCheckGracePeriod",
        ),
    )


@limit(
    "autoscaling/group:Group",
    source=f"{_SCALING}APIReference/API_LaunchTemplateSpecification.html",
)
def template_of_a_group(wanted: Wanted) -> Iterator[Refusal]:
    """Its template by id or by name, a version that there can be, 40 types at most."""
    mixed = (wanted.inputs.get("mixedInstancesPolicy") or {}).get("launchTemplate") or {}
    named = mixed.get("launchTemplateSpecification") or {}
    own = wanted.inputs.get("launchTemplate") or {}
    ids = [own.get("id"), named.get("launchTemplateId")]
    names = [own.get("name"), named.get("launchTemplateName")]
    versions = [each.get("version") for each in (own, named) if each.get("version") is not None]
    policy = wanted.inputs.get("instanceMaintenancePolicy") or {}
    least, most = (policy.get(f"{each}HealthyPercentage") for each in ("min", "max"))
    yield from first_of(
        "CreateAutoScalingGroup",
        "ValidationError",
        (
            (own or named) and sum(map(bool, ids + names)) != 1,
            "Valid requests must contain either launchTemplateId or LaunchTemplateName",
            "launchTemplate",
        ),
        (
            any(re.fullmatch(r"\$Latest|\$Default|\d+", str(each)) is None for each in versions),
            (
                "Invalid launch template version: either '$Default', '$Latest', or a numeric "
                "version are allowed."
            ),
            "launchTemplate",
        ),
        (
            len(mixed.get("overrides") or ()) > OVERRIDES,
            f"The maximum number of launch template overrides is {OVERRIDES}.",
            "mixedInstancesPolicy",
        ),
        (
            None not in (least, most) and int(most or 0) - int(least or 0) > 100,
            (
                "The difference between MinHealthyPercentage and MaxHealthyPercentage cannot be "
                "greater than 100."
            ),
            "instanceMaintenancePolicy",
        ),
    )


def _is_policy(name: str) -> bool:
    return name in _POLICIES or name.startswith("arn:")


@limit("eks/nodeGroup:NodeGroup", source=f"{_EKS}userguide/launch-templates.html")
def machines_of_a_node_group(wanted: Wanted) -> Iterator[Refusal]:
    """Types that the image runs on; what a launch template says is said there alone."""
    inputs, template = wanted.inputs, wanted.inputs.get("launchTemplate")
    types, image = inputs.get("instanceTypes") or (), str(inputs.get("amiType") or "")
    taints = [(e.get("key"), e.get("effect")) for e in inputs.get("taints") or ()]
    wrong = [each for each in types if image and not runs(image, str(each))]
    unknown = [str(each) for each in types if str(each) not in words_of("ec2", "InstanceType")]
    yield from first_of(
        "CreateNodegroup",
        "InvalidParameterException",
        (not inputs.get("subnetIds"), "Subnets cannot be empty.", "subnetIds"),
        (
            unknown,
            f"[{', '.join(unknown)}] is not a valid instance type",
            "instanceTypes",
        ),
        (
            wrong,
            f"[{', '.join(wrong)}] is not a valid instance type for requested amiType {image}",
            "instanceTypes",
        ),
        (
            template and bool(template.get("id")) == bool(template.get("name")),
            "Exactly one of the launch template's id and name must be specified.",
            "launchTemplate",
        ),
        (
            template and not template.get("version"),
            "The launch template's version must be specified.",
            "launchTemplate",
        ),
        (
            len(taints) > len(set(taints)),
            "Duplicate taints with the same key and effect are not allowed.",
            "taints",
        ),
        (
            image == "CUSTOM" and (inputs.get("releaseVersion") or inputs.get("version")),
            "You cannot specify a version or a release version for a custom AMI.",
            "releaseVersion",
        ),
        (len(types) > 20, "Instance types can have at most 20 entries.", "instanceTypes"),
        (
            template and inputs.get("diskSize") is not None,
            "Disk size must be specified within the launch template.",
            "diskSize",
        ),
        (
            template and inputs.get("remoteAccess"),
            "Remote access configuration cannot be specified with a launch template.",
            "remoteAccess",
        ),
    )


def runs(image: str, instance_type: str) -> bool:
    """Say whether nodes of an image can be of a type."""
    if image == "CUSTOM":
        return True
    if ("ARM" in image) != (_ARM.match(instance_type) is not None):
        return False
    plain = not re.search("GPU|NVIDIA|NEURON", image) and image.startswith("AL2")
    return not (plain and _GPU.match(instance_type))
