"""Reads the machines of some nodes from AWS into core.survey's facts, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from core.errors import StillwaterError
from core.survey.node_facts import (
    Instance,
    ManagedNodeGroup,
    ScaleIn,
    ScalingGroup,
    ScheduledEvent,
    TerminationHook,
)
from core.survey.tool_facts import TerminationQueue

# DescribeAutoScalingInstances takes no more at once.
AT_ONCE = 50
ON_DEMAND_ALONE = 100
UNHEALTHY = "Unhealthy"
# Of an instance refresh that ends no node any more.
REFRESHED = {"Successful", "Failed", "Cancelled", "RollbackFailed", "RollbackSuccessful"}
NODE_GROUP_TAG = "eks:nodegroup-name"
CLUSTER_TAG = "eks:cluster-name"
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"


def _portions(wanted: Iterable[str]) -> Iterator[list[str]]:
    every = sorted(set(wanted))
    for start in range(0, len(every), AT_ONCE):
        yield every[start : start + AT_ONCE]


def instances(client: Any, wanted: Sequence[str]) -> dict[str, Instance]:
    """Return what EC2 says of every instance it knows; raise where it knows none of them."""
    found = {}
    for portion in _portions(wanted):
        answer = client.describe_instances(Filters=[{"Name": "instance-id", "Values": portion}])
        for reservation in answer["Reservations"]:
            for each in reservation["Instances"]:
                found[str(each["InstanceId"])] = Instance(
                    spot=each.get("InstanceLifecycle") == "spot",
                    tags={tag["Key"]: tag.get("Value", "") for tag in each.get("Tags") or ()},
                )
    if wanted and not found:
        raise StillwaterError(
            "EC2 knows none of the nodes' instances; the credentials are of another account, or "
            "--region of another region"
        )
    return found


def scheduled(client: Any, wanted: Iterable[str]) -> dict[str, tuple[ScheduledEvent, ...]]:
    """Return what AWS has scheduled for each instance; those without an event are left out."""
    found = {}
    for portion in _portions(wanted):
        answer = client.describe_instance_status(InstanceIds=portion)
        for each in answer["InstanceStatuses"]:
            events = tuple(
                ScheduledEvent(
                    code=str(event["Code"]),
                    not_before=None
                    if (at := event.get("NotBefore")) is None
                    else f"{at:%F %R} UTC",
                )
                for event in each.get("Events") or ()
                # EC2 shows for a week what is over.
                if not str(event.get("Description", "")).startswith(("[Completed]", "[Canceled]"))
            )
            if events:
                found[str(each["InstanceId"])] = events
    return found


def group_of(client: Any, wanted: Sequence[str]) -> dict[str, str]:
    """Return the group's name of every instance that is in one."""
    found = {}
    for portion in _portions(wanted):
        answer = client.describe_auto_scaling_instances(InstanceIds=portion)
        for each in answer["AutoScalingInstances"]:
            found[str(each["InstanceId"])] = str(each["AutoScalingGroupName"])
    return found


def seen_here(found: Mapping[str, str], *, known: bool) -> Mapping[str, str]:
    """Return groups as they are; raise where none may mean another account or region."""
    if not found and not known:
        raise StillwaterError(
            "none of the nodes' instances is in a group of this account and region, and EC2 does "
            "not say whether they are here at all"
        )
    return found


def groups(client: Any, names: Iterable[str]) -> dict[str, ScalingGroup]:
    found = {}
    for portion in _portions(names):
        answer = client.describe_auto_scaling_groups(
            AutoScalingGroupNames=portion, MaxRecords=AT_ONCE
        )
        for each in answer["AutoScalingGroups"]:
            found[str(each["AutoScalingGroupName"])] = _group(client, each)
    return found


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
    members = item.get("Instances") or ()
    return ScalingGroup(
        name=name,
        zones=frozenset(item["AvailabilityZones"]),
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
        asks_load_balancer="ELB" in str(item.get("HealthCheckType") or "").split(","),
        tags=tags,
        may_be_spot=_may_be_spot(item.get("MixedInstancesPolicy") or {}, int(item["MaxSize"])),
        states={
            str(each["InstanceId"]): (
                UNHEALTHY
                if each.get("HealthStatus") == UNHEALTHY
                else str(each.get("LifecycleState"))
            )
            for each in members
        },
        reuses=bool(_reuse(item).get("ReuseOnScaleIn")),
        protected=_protected(item),
    )


def _reuse(item: Mapping[str, Any]) -> Mapping[str, Any]:
    pool = item.get("WarmPoolConfiguration") or {}
    return dict(pool.get("InstanceReusePolicy") or {})


def _protected(item: Mapping[str, Any]) -> bool:
    held = item.get("Instances") or ()
    return bool(held) and all(each.get("ProtectedFromScaleIn") for each in held)


def scale_ins(client: Any, names: Iterable[str]) -> dict[str, tuple[ScaleIn, ...]]:
    """Return what lowers each group's size by itself; groups that nothing does are left out."""
    found = {name: (*_policies(client, name), *_actions(client, name)) for name in sorted(names)}
    return {name: each for name, each in found.items() if each}


def _policies(client: Any, group: str) -> Iterator[ScaleIn]:
    pages = client.get_paginator("describe_policies").paginate(AutoScalingGroupName=group)
    for policy in (each for page in pages for each in page["ScalingPolicies"]):
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
    paged = client.get_paginator("describe_scheduled_actions")
    pages = paged.paginate(AutoScalingGroupName=group)
    for action in (each for page in pages for each in page["ScheduledUpdateGroupActions"]):
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
        group.name: _managed(
            client.describe_nodegroup(
                clusterName=group.eks_cluster, nodegroupName=group.managed_node_group
            )["nodegroup"]
        )
        for group in found
        if group.managed_node_group and group.eks_cluster
    }


def _managed(item: Mapping[str, Any]) -> ManagedNodeGroup:
    update = item.get("updateConfig") or {}
    return ManagedNodeGroup(
        name=str(item["nodegroupName"]),
        at_once=update.get("maxUnavailable"),
        percent_at_once=update.get("maxUnavailablePercentage"),
        strategy=str(update.get("updateStrategy", "DEFAULT")),
        repaired=bool((item.get("nodeRepairConfig") or {}).get("enabled")),
        updating=item.get("status") == "UPDATING",
    )


def queue(sqs: Any, events: Any, url: str) -> TerminationQueue:
    """Return what a termination handler's queue keeps, and whether it is told of terminations."""
    said = sqs.get_queue_attributes(
        QueueUrl=url,
        AttributeNames=["QueueArn", "MessageRetentionPeriod", "Policy", "KmsMasterKeyId"],
    )["Attributes"]
    arn = str(said["QueueArn"])
    policy = str(said.get("Policy") or "")
    names = list(_rules(events, arn))
    rules = (events.describe_rule(Name=name) for name in names)
    barred = _barred(policy, str(said.get("KmsMasterKeyId") or ""))
    if barred and any(_by_role(events, name, arn) for name in names):
        barred = None
    return TerminationQueue(
        arn=arn,
        kept_seconds=int(said["MessageRetentionPeriod"]),
        patterns=tuple(
            json.loads(rule.get("EventPattern") or "{}")
            for rule in rules
            if rule.get("State") != "DISABLED"
        ),
        barred=barred,
        by_topic="sns.amazonaws.com" in policy,
    )


def _rules(events: Any, arn: str) -> Iterator[str]:
    following: str | None = None
    while following != "":
        given = {"NextToken": following} if following else {}
        answer = events.list_rule_names_by_target(TargetArn=arn, **given)
        yield from answer["RuleNames"]
        following = answer.get("NextToken") or ""


def _by_role(events: Any, rule: str, arn: str) -> bool:
    """Say whether a rule sends to a queue under a role of its own, whose rights are not read."""
    targets = events.list_targets_by_rule(Rule=rule)["Targets"]
    return any(each["Arn"] == arn and each.get("RoleArn") for each in targets)


def _barred(policy: str, key: str) -> str | None:
    """Return why EventBridge's messages do not arrive in a queue, by its policy and its key."""
    allowed = (_allowed(each) for each in _statements(policy))
    if not any(allowed):
        return "its policy does not let events.amazonaws.com send"
    # The policy of AWS's own key names SQS's callers alone.
    if key.endswith("alias/aws/sqs"):
        return "EventBridge may not use the key alias/aws/sqs that encrypts it"
    return None


def _statements(policy: str) -> list[Mapping[str, Any]]:
    found = json.loads(policy or "{}").get("Statement") or []
    return [found] if isinstance(found, dict) else list(found)


def _allowed(statement: Mapping[str, Any]) -> bool:
    """Say whether a statement lets EventBridge send; its conditions are taken for met."""
    principal = statement.get("Principal")
    named = principal.get("Service", principal.get("AWS")) if isinstance(principal, dict) else None
    who = [principal] if isinstance(principal, str) else _several(named)
    what = [each.lower() for each in _several(statement.get("Action"))]
    return (
        statement.get("Effect") == "Allow"
        and any(each in {"*", "events.amazonaws.com"} for each in who)
        and any(each in {"*", "sqs:*", "sqs:send*", "sqs:sendmessage"} for each in what)
    )


def _several(given: object) -> list[str]:
    return [given] if isinstance(given, str) else list(given) if isinstance(given, list) else []
