"""Reads the machines of some nodes from AWS into core.survey's facts, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cli.aws_pages import pages
from cli.survey import machine_templates
from core.errors import StillwaterError
from core.instances import table
from core.survey.node_facts import (
    FargateProfile,
    Instance,
    MachineStatus,
    ManagedNodeGroup,
    ScaleIn,
    ScalingGroup,
    ScheduledEvent,
    TerminationHook,
)
from handlers.adapters.calls import portions

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
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
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
        metadata_open=machine_templates.metadata_open(item.get("MetadataOptions") or {}),
        metadata_far=machine_templates.metadata_far(item.get("MetadataOptions") or {}),
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


def groups(client: Any, names: Iterable[str]) -> dict[str, ScalingGroup]:
    return {
        str(each["AutoScalingGroupName"]): _group(client, each)
        for portion in portions(sorted(set(names)), AT_ONCE)
        for each in client.describe_auto_scaling_groups(
            AutoScalingGroupNames=portion, MaxRecords=AT_ONCE
        )["AutoScalingGroups"]
    }


def every_group(client: Any, wanted: Iterable[str]) -> dict[str, ScalingGroup]:
    """Return all of some groups; raise where one is not described."""
    names = frozenset(wanted)
    found = groups(client, names)
    if missing := sorted(names - set(found)):
        raise StillwaterError(f"EC2 Auto Scaling does not describe {', '.join(missing)}")
    return found


def _group(client: Any, item: Mapping[str, Any]) -> ScalingGroup:
    name = str(item["AutoScalingGroupName"])
    hooks = client.describe_lifecycle_hooks(AutoScalingGroupName=name)["LifecycleHooks"]
    triggers = (item.get("InstanceLifecyclePolicy") or {}).get("RetentionTriggers") or {}
    tags = {each["Key"]: each.get("Value", "") for each in item.get("Tags") or ()}
    members = item.get("Instances")
    warm = item.get("WarmPoolConfiguration") or {}
    templates = machine_templates.template_names(item)
    return ScalingGroup(
        name=name,
        zones=frozenset(item["AvailabilityZones"]),
        subnets=frozenset(filter(None, str(item.get("VPCZoneIdentifier") or "").split(","))),
        desired=int(item["DesiredCapacity"]),
        maximum=int(item["MaxSize"]),
        suspended=frozenset(p["ProcessName"] for p in item.get("SuspendedProcesses") or ()),
        hooks=tuple(
            TerminationHook(
                name=str(hook["LifecycleHookName"]),
                heartbeat_seconds=int(hook["HeartbeatTimeout"]),
                default_result=str(hook["DefaultResult"]),
                target=hook.get("NotificationTargetARN"),
            )
            for hook in hooks
            if hook["LifecycleTransition"] == TERMINATING
        ),
        retains_on_abandon=triggers.get("TerminateHookAbandon") == "retain",
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
        protected=_is_protected(item),
        failed_start=_failed_start(client, name)
        if members is not None and len(members) < int(item["DesiredCapacity"])
        else None,
        # It has a status only then.
        deleting=bool(item.get("Status")),
        follows_latest=any(each.version == "$Latest" for each in templates),
        templates=templates,
        weighted=machine_templates.is_weighted(item),
        healthy_percent=_healthy_percent(item.get("InstanceMaintenancePolicy") or {}),
        placement=item.get("PlacementGroup"),
        launch_hooks=tuple(
            f"{hook['LifecycleHookName']} ({hook['HeartbeatTimeout']} s)"
            for hook in hooks
            if hook["LifecycleTransition"] == LAUNCHING and hook["DefaultResult"] == "ABANDON"
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


def _healthy_percent(policy: Mapping[str, Any]) -> int | None:
    """Return the share that a maintenance policy keeps; -1 takes a policy away."""
    share = policy.get("MinHealthyPercentage")
    return None if share is None or int(share) < 0 else int(share)


def _is_protected(item: Mapping[str, Any]) -> bool:
    held = item.get("Instances") or ()
    return bool(held) and all(each.get("ProtectedFromScaleIn") for each in held)


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
