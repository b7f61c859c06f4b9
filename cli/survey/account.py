"""Reads instances, their groups and what groups start machines by from AWS, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from botocore.exceptions import ClientError

from cli.aws import pages
from core.ground.constants import ABANDON, TERMINATING
from core.ground.errors import StillwaterError
from core.ground.instances import table
from core.model.nodes import (
    FargateProfile,
    Instance,
    LifecycleHook,
    MachineStatus,
    MachineTemplate,
    ManagedNodeGroup,
    ScaleIn,
    ScalingGroup,
    ScheduledEvent,
    TemplateName,
)
from handlers.adapters.calls import MOST_FILTERED, portions

# A template, and what it starts machines by as EC2 has it.
Started: TypeAlias = tuple[MachineTemplate, Mapping[str, Any]]
Name = TypeVar("Name")
# By what a part is called in a sentence: the call that lists such, its answer, filter and name.
LISTED = {
    "image": ("describe_images", "Images", "image-id", "ImageId"),
    "security group": ("describe_security_groups", "SecurityGroups", "group-id", "GroupId"),
    "key pair": ("describe_key_pairs", "KeyPairs", "key-name", "KeyName"),
}
# Images that are no longer recommended start machines all the same; disabled ones do not.
ALSO = {"image": {"IncludeDeprecated": True, "IncludeDisabled": True}}
AVAILABLE = "available"


def keys(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of KMS's that a template names for disks."""
    disks = (each.get("Ebs") or {} for each in data.get("BlockDeviceMappings") or ())
    return tuple(sorted({str(disk["KmsKeyId"]) for disk in disks if disk.get("KmsKeyId")}))


def profile(named: Any) -> str | None:
    """Return an instance profile's name: of a template by name or ARN, else by itself."""
    said = (named.get("Arn") or named.get("Name")) if isinstance(named, Mapping) else named
    return str(said).rpartition("/")[2] if said else None


def templates_checked(ec2: Any, found: Mapping[Name, Started]) -> dict[Name, MachineTemplate]:
    """Return templates, each with what it names and AWS has no more."""
    named = {name: list(_parts(data)) for name, (_, data) in found.items()}
    wanted: dict[str, set[str]] = {}
    for kind, part in (each for parts in named.values() for each in parts):
        wanted.setdefault(kind, set()).add(part)
    there = {kind: set(_there(ec2, kind, parts)) for kind, parts in wanted.items()}
    return {
        name: replace(
            template, lost=tuple(f"{k} {part}" for k, part in named[name] if part not in there[k])
        )
        for name, (template, _) in found.items()
    }


def _parts(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a template or a launch configuration names: kind and name."""
    # One that a parameter of Systems Manager names is looked up when a machine starts.
    if (image := str(data.get("ImageId") or "")).startswith("ami-"):
        yield "image", image
    interfaces = data.get("NetworkInterfaces") or ()
    groups = [*(data.get("SecurityGroupIds") or ()), *(data.get("SecurityGroups") or ())]
    groups += [group for each in interfaces for group in each.get("Groups") or ()]
    for group in sorted({str(each) for each in groups}):
        # Before VPCs they went by name.
        if group.startswith("sg-"):
            yield "security group", group
    if pair := data.get("KeyName"):
        yield "key pair", str(pair)


def _there(ec2: Any, kind: str, wanted: Iterable[str]) -> Iterator[str]:
    call, answer, chosen, key = LISTED[kind]
    for portion in portions(sorted(wanted), MOST_FILTERED):
        asked = {"Filters": [{"Name": chosen, "Values": portion}], **ALSO.get(kind, {})}
        found = pages(ec2, call, answer, **asked)
        # Only images have a state.
        yield from (str(e[key]) for e in found if e.get("State", AVAILABLE) == AVAILABLE)


# How EC2 begins its codes for a template, or a version of one, that does not exist.
GONE = ("InvalidLaunchTemplateId", "InvalidLaunchTemplateName")
# In which a launch configuration's name stands in place of a template's.
CONFIGURATION = "launch configuration"


def template_names(group: Mapping[str, Any]) -> tuple[TemplateName, ...]:
    """Return what a group names to start machines by: one, or one for each of several types."""
    mixed = (group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
    given = [
        group.get("LaunchTemplate"),
        mixed.get("LaunchTemplateSpecification"),
        *(each.get("LaunchTemplateSpecification") for each in mixed.get("Overrides") or ()),
    ]
    found = [
        TemplateName(
            name=str(each.get("LaunchTemplateId") or each.get("LaunchTemplateName")),
            version=str(each.get("Version") or "$Default"),
        )
        for each in given
        if each
    ]
    if configuration := group.get("LaunchConfigurationName"):
        found.append(TemplateName(name=str(configuration)))
    return tuple(dict.fromkeys(found))


def is_weighted(group: Mapping[str, Any]) -> bool:
    """Say whether a group's sizes count something else than machines."""
    mixed = (group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
    weights = {str(each.get("WeightedCapacity") or "1") for each in mixed.get("Overrides") or ()}
    return group.get("DesiredCapacityType", "units") != "units" or bool(weights - {"1"})


def templates(
    ec2: Any, autoscaling: Any, groups: Iterable[ScalingGroup]
) -> dict[str, tuple[MachineTemplate, ...]]:
    """Return by group what it starts machines by; each is asked for once."""
    every = list(groups)
    wanted = dict.fromkeys(each for group in every for each in group.templates)
    found = templates_checked(ec2, {each: _template(ec2, autoscaling, each) for each in wanted})
    return {group.name: tuple(found[each] for each in group.templates) for group in every}


def _template(ec2: Any, autoscaling: Any, wanted: TemplateName) -> Started:
    if wanted.version is None:
        return _configuration(autoscaling, wanted.name)
    key = "LaunchTemplateId" if wanted.name.startswith("lt-") else "LaunchTemplateName"
    title = f"version {wanted.version} of launch template {wanted.name}"
    try:
        answer = ec2.describe_launch_template_versions(
            **{key: wanted.name}, Versions=[wanted.version]
        )
    except ClientError as error:
        if error.response["Error"]["Code"].startswith(GONE):
            return MachineTemplate(title=title, missing=True), {}
        raise
    versions = answer["LaunchTemplateVersions"]
    if not versions:
        return MachineTemplate(title=title, missing=True), {}
    data = versions[0].get("LaunchTemplateData") or {}
    reserved = data.get("CapacityReservationSpecification") or {}
    template = MachineTemplate(
        title=title,
        market=(data.get("InstanceMarketOptions") or {}).get("MarketType"),
        metadata_open=metadata_open(data.get("MetadataOptions") or {}),
        placement=next(_places(data.get("Placement") or {}, reserved), None),
        keys=keys(data),
        profile=profile(data.get("IamInstanceProfile")),
    )
    return template, data


def _configuration(autoscaling: Any, name: str) -> Started:
    title = f"{CONFIGURATION} {name}"
    answer = autoscaling.describe_launch_configurations(LaunchConfigurationNames=[name])
    found = answer["LaunchConfigurations"]
    if not found:
        return MachineTemplate(title=title, missing=True), {}
    template = MachineTemplate(
        title=title,
        market="spot" if found[0].get("SpotPrice") else None,
        metadata_open=metadata_open(found[0].get("MetadataOptions") or {}),
        placement="dedicated machines" if found[0].get("PlacementTenancy") == "dedicated" else None,
        profile=profile(found[0].get("IamInstanceProfile")),
    )
    return template, found[0]


def _places(placement: Mapping[str, Any], reserved: Mapping[str, Any]) -> Iterator[str]:
    if group := placement.get("GroupName") or placement.get("GroupId"):
        yield f"placement group {group}"
    if placement.get("Tenancy") == "host":
        yield "hosts of its own"
    if reserved.get("CapacityReservationPreference") == "capacity-reservations-only":
        yield "capacity reservations"


def metadata_open(options: Mapping[str, Any]) -> bool:
    """Say whether a machine's metadata are told without a token; what is not said is not known."""
    off = options.get("HttpEndpoint") == "disabled"
    return options.get("HttpTokens") == "optional" and not off


def metadata_far(options: Mapping[str, Any]) -> bool:
    """Say whether pods in a network of their own get no metadata."""
    near = options.get("HttpPutResponseHopLimit") == 1 and options.get("HttpTokens") == "required"
    return near or options.get("HttpEndpoint") == "disabled"


# DescribeAutoScalingInstances takes no more at once.
AT_ONCE = 50
ON_DEMAND_ALONE = 100
UNHEALTHY = "Unhealthy"
# Of a group's activities, how many are looked at, and which are over.
LATEST, OVER = 20, {"Successful", "Failed", "Cancelled"}
# States of an instance that does not go on.
ENDING = {"shutting-down", "stopping", "stopped", "terminated"}
CHECKS = {
    "SystemStatus": "its host",
    "InstanceStatus": "the instance",
    "AttachedEbsStatus": "its volumes",
}
# Of an instance refresh that ends no node any more.
REFRESHED = {"Successful", "Failed", "Cancelled", "RollbackFailed", "RollbackSuccessful"}
NODE_GROUP_TAG = "eks:nodegroup-name"
CLUSTER_TAG = "eks:cluster-name"
LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"


def instances(client: Any, wanted: Sequence[str]) -> dict[str, Instance]:
    """Return what EC2 says of every instance it knows; raise where it knows none of them."""
    found = {
        str(each["InstanceId"]): instance(each)
        for portion in portions(sorted(set(wanted)), AT_ONCE)
        for reservation in client.describe_instances(
            Filters=[{"Name": "instance-id", "Values": portion}]
        )["Reservations"]
        for each in reservation["Instances"]
    }
    if wanted and not found:
        raise StillwaterError(
            "EC2 knows none of the nodes' instances; the credentials are of another account, or "
            "--region of another region"
        )
    return found


def instance(item: Mapping[str, Any]) -> Instance:
    """Return an instance as EC2 describes it."""
    return Instance(
        lifecycle=item.get("InstanceLifecycle"),
        tags={tag["Key"]: tag.get("Value", "") for tag in item.get("Tags") or ()},
        ending=(item.get("State") or {}).get("Name") in ENDING,
        type=str(item.get("InstanceType") or ""),
        vcpus=vcpus(item),
        subnet=item.get("SubnetId"),
        metadata_open=metadata_open(item.get("MetadataOptions") or {}),
        metadata_far=metadata_far(item.get("MetadataOptions") or {}),
        outpost=item.get("OutpostArn"),
        private_dns_name=str(item.get("PrivateDnsName") or ""),
    )


def vcpus(item: Mapping[str, Any]) -> int:
    """Return what a machine counts for in the quotas of vCPUs."""
    options = item.get("CpuOptions") or {}
    said = int(options.get("CoreCount", 0)) * int(options.get("ThreadsPerCore", 1))
    known = table().types.get(str(item.get("InstanceType")))
    return said or (known.vcpus if known else 0)


def statuses(client: Any, wanted: Iterable[str]) -> dict[str, MachineStatus]:
    """Return what AWS has scheduled for each instance and which of its checks fail."""
    found = {}
    for portion in portions(sorted(set(wanted)), AT_ONCE):
        answer = client.describe_instance_status(InstanceIds=portion)
        for each in answer["InstanceStatuses"]:
            events = tuple(
                ScheduledEvent(code=str(event["Code"]), not_before=_minute(event.get("NotBefore")))
                for event in each.get("Events") or ()
                # EC2 shows for a week what is over.
                if not str(event.get("Description", "")).startswith(("[Completed]", "[Canceled]"))
            )
            impaired = tuple(
                title
                for key, title in CHECKS.items()
                if (each.get(key) or {}).get("Status") == "impaired"
            )
            if events or impaired:
                found[str(each["InstanceId"])] = MachineStatus(events=events, impaired=impaired)
    return found


def _minute(moment: Any) -> str | None:
    return None if moment is None else f"{moment:%F %R} UTC"


def group_of(client: Any, wanted: Sequence[str]) -> dict[str, str]:
    """Return the group's name of every instance that is in one."""
    return {
        str(each["InstanceId"]): str(each["AutoScalingGroupName"])
        for portion in portions(sorted(set(wanted)), AT_ONCE)
        for each in client.describe_auto_scaling_instances(InstanceIds=portion)[
            "AutoScalingInstances"
        ]
    }


def seen_here(found: Mapping[str, str], *, known: bool) -> Mapping[str, str]:
    """Return groups as they are; raise where none may mean another account or region."""
    if not found and not known:
        raise StillwaterError(
            "none of the nodes' instances is in a group of this account and region, and EC2 does "
            "not say whether they are here at all"
        )
    return found


def described_groups(client: Any, names: Iterable[str]) -> list[Mapping[str, Any]]:
    """Return some groups as EC2 Auto Scaling describes them; one that is gone is left out."""
    return [
        each
        for portion in portions(sorted(set(names)), AT_ONCE)
        for each in client.describe_auto_scaling_groups(
            AutoScalingGroupNames=portion, MaxRecords=AT_ONCE
        )["AutoScalingGroups"]
    ]


def groups(client: Any, names: Iterable[str]) -> dict[str, ScalingGroup]:
    found = described_groups(client, names)
    return {str(each["AutoScalingGroupName"]): _group(client, each) for each in found}


def every_group(client: Any, wanted: Iterable[str]) -> dict[str, ScalingGroup]:
    """Return all of some groups; raise where one is not described."""
    names = frozenset(wanted)
    found = groups(client, names)
    if missing := sorted(names - set(found)):
        raise StillwaterError(f"EC2 Auto Scaling does not describe {', '.join(missing)}")
    return found


def _group(client: Any, item: Mapping[str, Any]) -> ScalingGroup:
    name, members = str(item["AutoScalingGroupName"]), item.get("Instances")
    short = members is not None and len(members) < int(item["DesiredCapacity"])
    group = scaling_group(item, hooks(client, name))
    return replace(group, failed_start=_failed_start(client, name)) if short else group


def hooks(client: Any, group: str) -> list[LifecycleHook]:
    return [
        LifecycleHook(
            name=str(hook["LifecycleHookName"]),
            transition=str(hook["LifecycleTransition"]),
            heartbeat_seconds=int(hook["HeartbeatTimeout"]),
            default_result=str(hook["DefaultResult"]),
            target=hook.get("NotificationTargetARN"),
        )
        for hook in client.describe_lifecycle_hooks(AutoScalingGroupName=group)["LifecycleHooks"]
    ]


def scaling_group(item: Mapping[str, Any], hooks: Iterable[LifecycleHook] = ()) -> ScalingGroup:
    """Return a group as EC2 Auto Scaling describes it, with its lifecycle hooks."""
    triggers = (item.get("InstanceLifecyclePolicy") or {}).get("RetentionTriggers") or {}
    tags = {each["Key"]: each.get("Value", "") for each in item.get("Tags") or ()}
    members = item.get("Instances")
    warm = item.get("WarmPoolConfiguration") or {}
    templates, standing = template_names(item), tuple(hooks)
    return ScalingGroup(
        name=str(item["AutoScalingGroupName"]),
        zones=frozenset(item["AvailabilityZones"]),
        subnets=frozenset(filter(None, str(item.get("VPCZoneIdentifier") or "").split(","))),
        desired=int(item["DesiredCapacity"]),
        minimum=int(item.get("MinSize") or 0),
        maximum=int(item["MaxSize"]),
        suspended=frozenset(p["ProcessName"] for p in item.get("SuspendedProcesses") or ()),
        hooks=tuple(hook for hook in standing if hook.transition == TERMINATING),
        on_abandon=triggers.get("TerminateHookAbandon"),
        managed_node_group=tags.get(NODE_GROUP_TAG),
        eks_cluster=tags.get(CLUSTER_TAG),
        lifetime_seconds=item.get("MaxInstanceLifetime"),
        asks=frozenset(str(item.get("HealthCheckType") or "EC2").split(",")) - {"EC2"},
        tags=tags,
        may_be_spot=_may_be_spot(item.get("MixedInstancesPolicy") or {}, int(item["MaxSize"])),
        states=None
        if members is None
        else {
            str(each["InstanceId"]): (
                UNHEALTHY
                if each.get("HealthStatus") == UNHEALTHY
                else str(each.get("LifecycleState"))
            )
            for each in members
        },
        reuses=bool((warm.get("InstanceReusePolicy") or {}).get("ReuseOnScaleIn")),
        protected=bool(members and all(m.get("ProtectedFromScaleIn") for m in members)),
        # It has a status only then.
        deleting=bool(item.get("Status")),
        follows_latest=any(each.version == "$Latest" for each in templates),
        templates=templates,
        weighted=is_weighted(item),
        healthy_percent=_healthy_percent(item.get("InstanceMaintenancePolicy") or {}),
        placement=item.get("PlacementGroup"),
        launch_hooks=tuple(
            f"{hook.name} ({hook.heartbeat_seconds} s)"
            for hook in standing
            if hook.transition == LAUNCHING and hook.default_result == ABANDON
        ),
        service_role=item.get("ServiceLinkedRoleARN"),
    )


def _failed_start(client: Any, group: str) -> str | None:
    """Return why a group's last activity that is over has failed; None: it has not."""
    answer = client.describe_scaling_activities(AutoScalingGroupName=group, MaxRecords=LATEST)
    over = (each for each in answer["Activities"] if each["StatusCode"] in OVER)
    last = next(over, None)
    if last is None or last["StatusCode"] == "Successful":
        return None
    return " ".join(str(last.get("StatusMessage") or "no reason is given").split())


def _healthy_percent(policy: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the least and the most that a policy keeps; -1 takes a policy away."""
    least, most = policy.get("MinHealthyPercentage"), policy.get("MaxHealthyPercentage")
    return None if least is None or int(least) < 0 else (int(least), int(most or 100))


def scale_ins(client: Any, names: Iterable[str]) -> dict[str, tuple[ScaleIn, ...]]:
    """Return what lowers each group's size by itself; groups that nothing does are left out."""
    found = {name: (*_policies(client, name), *_actions(client, name)) for name in sorted(names)}
    return {name: each for name, each in found.items() if each}


def _policies(client: Any, group: str) -> Iterator[ScaleIn]:
    for policy in pages(client, "describe_policies", "ScalingPolicies", AutoScalingGroupName=group):
        if policy.get("Enabled", True) and _lowers(policy):
            yield ScaleIn(title=f"scaling policy {policy['PolicyName']}")


def _lowers(policy: Mapping[str, Any]) -> bool:
    """Say whether a policy may lower a size; predictive scaling only raises it."""
    kind = policy.get("PolicyType", "SimpleScaling")
    if kind == "PredictiveScaling":
        return False
    if kind == "TargetTrackingScaling":
        return not (policy.get("TargetTrackingConfiguration") or {}).get("DisableScaleIn")
    steps = [step["ScalingAdjustment"] for step in policy.get("StepAdjustments") or ()]
    change = [*steps, policy.get("ScalingAdjustment") or 0]
    return policy.get("AdjustmentType") == "ExactCapacity" or min(change) < 0


def _actions(client: Any, group: str) -> Iterator[ScaleIn]:
    for action in pages(
        client,
        "describe_scheduled_actions",
        "ScheduledUpdateGroupActions",
        AutoScalingGroupName=group,
    ):
        given = [action[key] for key in ("DesiredCapacity", "MaxSize") if key in action]
        if given:
            title = f"scheduled action {action['ScheduledActionName']}"
            yield ScaleIn(title=title, leaves=int(min(given)))


def _may_be_spot(policy: Mapping[str, Any], maximum: int) -> bool:
    """Say whether a group may start spot instances; without a share all are on demand."""
    shares = policy.get("InstancesDistribution") or {}
    share = shares.get("OnDemandPercentageAboveBaseCapacity")
    above_base = maximum > int(shares.get("OnDemandBaseCapacity") or 0)
    return share is not None and int(share) < ON_DEMAND_ALONE and above_base


def refreshes(client: Any, names: Iterable[str]) -> dict[str, str]:
    """Return the state of the instance refresh that each group is in; most are in none."""
    found = {}
    for name in sorted(names):
        # The newest come first, and a group is in one of them at most.
        answer = client.describe_instance_refreshes(AutoScalingGroupName=name)
        under_way = (
            str(each["Status"])
            for each in answer["InstanceRefreshes"]
            if each["Status"] not in REFRESHED
        )
        if status := next(under_way, None):
            found[name] = status
    return found


def managed_node_groups(client: Any, found: Iterable[ScalingGroup]) -> dict[str, ManagedNodeGroup]:
    return {
        group.name: _managed_node_group(
            client.describe_nodegroup(
                clusterName=group.eks_cluster, nodegroupName=group.managed_node_group
            )["nodegroup"]
        )
        for group in found
        if group.managed_node_group and group.eks_cluster
    }


def fargate_profiles(client: Any, cluster: str) -> tuple[FargateProfile, ...]:
    """Return a cluster's Fargate profiles; most have none."""
    return tuple(
        FargateProfile(
            name=name,
            selectors=tuple(
                (str(each["namespace"]), each.get("labels") or {})
                for each in client.describe_fargate_profile(
                    clusterName=cluster, fargateProfileName=name
                )["fargateProfile"].get("selectors")
                or ()
            ),
        )
        for name in pages(
            client, "list_fargate_profiles", "fargateProfileNames", clusterName=cluster
        )
    )


def health_issues(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what EKS says is wrong with something of its own: code and message."""
    return tuple(
        f"{issue['code']}: {issue.get('message') or 'no more is said'}"
        for issue in (item.get("health") or {}).get("issues") or ()
    )


def _managed_node_group(item: Mapping[str, Any]) -> ManagedNodeGroup:
    update = item.get("updateConfig") or {}
    return ManagedNodeGroup(
        name=str(item["nodegroupName"]),
        at_once=update.get("maxUnavailable"),
        percent_at_once=update.get("maxUnavailablePercentage"),
        strategy=str(update.get("updateStrategy", "DEFAULT")),
        repaired=bool((item.get("nodeRepairConfig") or {}).get("enabled")),
        status=str(item.get("status", "ACTIVE")),
        issues=health_issues(item),
        spot=item.get("capacityType") == "SPOT",
    )
