"""Reads what AWS knows of a cluster's machines and of the account around them, part by part.

Disks, keys, nodes' roles and a termination handler's queue are read here, and nothing is changed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import yaml
from botocore.exceptions import ClientError

from cli.answers import answer_or_reason, then, then_any
from cli.aws import filtered_pages, pages
from cli.survey import account, surroundings
from cli.survey.draft import eks_cluster
from cli.survey.tools import one
from core.checks.facts import ControlPlane, Disk, WayOut
from core.checks.room import EBS_IDS
from core.ground.errors import StillwaterError
from core.ground.fields import Unknown, mapping_of
from core.ground.instances import vcpu_quota
from core.model.account import ENABLED, EncryptionKey, Subnet, VpcEndpoint
from core.model.kafka import Volume
from core.model.nodes import MachineTemplate, Node, NodeRole, ScalingGroup
from core.model.workloads import TerminationHandler, TerminationQueue
from infra.eks.api import Api

OVER = "completed"
UNWELL = [{"Name": "volume-status.status", "Values": ["impaired", "warning"]}]
FAILED = ("failed", "degraded", "severely-degraded", "stalled")
# Of a snapshot that is not whole yet.
MADE = [{"Name": "status", "Values": ["pending"]}]


def read_disks(ec2: Any, volumes: Iterable[Volume]) -> dict[str, Disk]:
    """Return Kafka's disks by id; one that is gone is left out, since a filter passes over it."""
    names = {v.handle for v in volumes if v.handle and v.handle.startswith(EBS_IDS)}
    modified = filtered_pages(
        ec2, "describe_volumes_modifications", "VolumesModifications", "volume-id", names
    )
    changes = {str(each["VolumeId"]): str(each.get("ModificationState")) for each in modified}
    return {
        (name := str(item["VolumeId"])): _disk(item, changes.get(name, OVER))
        for item in filtered_pages(ec2, "describe_volumes", "Volumes", "volume-id", names)
    }


def _disk(item: Mapping[str, Any], change: str) -> Disk:
    return Disk(
        type=str(item.get("VolumeType") or ""),
        gib=float(item.get("Size") or 0),
        state=str(item.get("State") or "in-use"),
        multi_attach=bool(item.get("MultiAttachEnabled")),
        key=item.get("KmsKeyId"),
        attached={
            str(each["InstanceId"]): str(each.get("State") or "attached")
            for each in item.get("Attachments") or ()
            # What a service has attached is no machine of the account's.
            if each.get("InstanceId")
        },
        change=None if change == OVER else change,
    )


def checks(ec2: Any, known: Collection[str]) -> dict[str, str]:
    """Return what EBS's checks say of those of some disks that are not ok."""
    # All that are unwell: this call has no filter by name, and fails where one of some is gone.
    return {
        name: _failed_checks(each.get("VolumeStatus") or {})
        for each in pages(ec2, "describe_volume_status", "VolumeStatuses", Filters=UNWELL)
        if (name := str(each["VolumeId"])) in known
    }


def _failed_checks(status: Mapping[str, Any]) -> str:
    """Return what EBS's checks say of a volume that is unwell: impaired (io-enabled: failed)."""
    failed = [
        f"{each.get('Name')}: {each.get('Status')}"
        for each in status.get("Details") or ()
        if each.get("Status") in FAILED
    ]
    return str(status.get("Status")) + (f" ({', '.join(failed)})" if failed else "")


def snapshots(ec2: Any, known: Collection[str]) -> dict[str, int]:
    """Return how many snapshots of each of some disks are being made."""
    made = filtered_pages(
        ec2, "describe_snapshots", "Snapshots", "volume-id", known, MADE, OwnerIds=["self"]
    )
    return dict(Counter(str(each["VolumeId"]) for each in made))


def volumes_at_ebs(
    volumes: tuple[Volume, ...] | Unknown, known: Mapping[str, Disk] | Unknown
) -> tuple[Volume, ...] | Unknown:
    """Return volumes with type and size as EBS has them: a class speaks of those it makes next."""
    if isinstance(volumes, Unknown) or isinstance(known, Unknown):
        return volumes
    return tuple(
        replace(each, ebs_type=disk.type or each.ebs_type, gib=disk.gib or each.gib)
        if (disk := known.get(each.handle or ""))
        else each
        for each in volumes
    )


GONE = "NoSuchEntity"
AWS_AUTH = "/api/v1/namespaces/kube-system/configmaps/aws-auth"
# The type of access entries that are not of machines.
PEOPLES = "STANDARD"
# Of EKS's authentication modes, the one without access entries, and the one without aws-auth.
CONFIG_MAP, ENTRIES = "CONFIG_MAP", "API"


def node_roles(iam: Any, templates: Iterable[MachineTemplate]) -> dict[str, NodeRole | None]:
    """Return by instance profile its role."""
    named = sorted({each.profile for each in templates if each.profile})
    return {name: _role(iam, name) for name in named}


def _role(iam: Any, profile: str) -> NodeRole | None:
    try:
        found = iam.get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]
    except ClientError as error:
        if error.response["Error"]["Code"] == GONE:
            return None
        raise
    roles = (
        NodeRole(str(r["RoleName"]), r["CreateDate"].timestamp()) for r in found.get("Roles") or ()
    )
    return next(roles, None)


def admitted_roles(
    eks: Any, api: Api, plane: ControlPlane, wanted: Collection[str]
) -> dict[str, float | None]:
    """Return which wanted roles a cluster knows: aws-auth knows none by its path.

    Where an access entry and aws-auth name a role, EKS goes by the entry. One of people's type
    lets no node join.
    """
    mode = plane.authentication or CONFIG_MAP
    mapped = [] if mode == ENTRIES else [arn.rpartition("/")[2] for arn in _mapped(api)]
    entries = {} if mode == CONFIG_MAP else dict(_entries(eks, plane.name, wanted))
    return {
        **{name: None for name in mapped if name in wanted and name not in entries},
        **{
            name: entry["createdAt"].timestamp()
            for name, entry in entries.items()
            if entry.get("type") != PEOPLES
        },
    }


def _entries(
    eks: Any, cluster: str, wanted: Collection[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for arn in pages(eks, "list_access_entries", "accessEntries", clusterName=cluster):
        if (name := str(arn).rpartition("/")[2]) in wanted:
            answer = eks.describe_access_entry(clusterName=cluster, principalArn=arn)
            yield name, answer["accessEntry"]


def _mapped(api: Api) -> Iterator[str]:
    found = one(api, AWS_AUTH) or {}
    try:
        roles = yaml.safe_load((found.get("data") or {}).get("mapRoles") or "[]") or []
    except yaml.YAMLError:
        raise StillwaterError("mapRoles of ConfigMap kube-system/aws-auth is not YAML") from None
    for each in roles:
        yield str(each.get("rolearn") or "")


KEY_GONE, DENIED = "NotFoundException", "AccessDeniedException"
CUSTOMER = "CUSTOMER"


def encryption_keys(
    kms: Any, disks: Iterable[Disk], templates: Iterable[MachineTemplate], account: str | None
) -> dict[str, EncryptionKey]:
    """Return keys by what disks and templates call them; another account's may not be told."""
    started = {key for template in templates for key in template.keys}
    wanted = started | {disk.key for disk in disks if disk.key}
    found = {}
    for name in sorted(wanted):
        owners = (account, None) if name in started else ()
        try:
            found[name] = encryption_key(kms, name, owners)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == KEY_GONE:
                found[name] = EncryptionKey(name=name, state="gone")
            # That it is another account's is said of the disks.
            elif code != DENIED or not account or name.split(":")[4:5] in ([account], []):
                raise
    return found


def encryption_key(kms: Any, name: str, owners: Collection[str | None] | None) -> EncryptionKey:
    """Return a key; of a customer's that one of `owners` has, or anybody at None, with its users.

    An owner of None is one that KMS does not say.
    """
    said = kms.describe_key(KeyId=name)["KeyMetadata"]
    day, state = said.get("DeletionDate"), str(said.get("KeyState") or ENABLED)
    asked = owners is None or said.get("AWSAccountId") in owners
    return EncryptionKey(
        name=name,
        state=state,
        deleted_on=f"{day:%F}" if isinstance(day, datetime) else None,
        users=_users(kms, name)
        if asked and said.get("KeyManager") == CUSTOMER and state == ENABLED
        else None,
    )


def _users(kms: Any, name: str) -> frozenset[str]:
    """Return whom a key's grants and its policy name: a role, or a whole account."""
    grants = pages(kms, "list_grants", "Grants", KeyId=name)
    found = {str(grant.get("GranteePrincipal")) for grant in grants}
    policy = json.loads(kms.get_key_policy(KeyId=name, PolicyName="default")["Policy"])
    statements = policy.get("Statement") or ()
    for each in [statements] if isinstance(statements, Mapping) else statements:
        if each.get("Effect") == "Allow":
            found |= _principals(each.get("Principal"))
    return frozenset(found)


def _principals(principal: Any) -> set[str]:
    if not isinstance(principal, Mapping):
        return {str(principal)}
    named = principal.get("AWS", ())
    listed: Collection[str] = (named,) if isinstance(named, str) else named
    return set(listed)


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
    barred = _delivery_barrier(policy, str(said.get("KmsMasterKeyId") or ""))
    if barred and any(_has_role(events, name, arn) for name in names):
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


def _has_role(events: Any, rule: str, arn: str) -> bool:
    """Say whether a rule sends to a queue under a role of its own, whose rights are not read."""
    targets = events.list_targets_by_rule(Rule=rule)["Targets"]
    return any(each["Arn"] == arn and each.get("RoleArn") for each in targets)


def _delivery_barrier(policy: str, key: str) -> str | None:
    """Return why EventBridge's messages do not arrive in a queue, by its policy and its key."""
    allowed = (_allows_eventbridge(each) for each in _statements(policy))
    if not any(allowed):
        return "its policy does not let events.amazonaws.com send"
    # The policy of AWS's own key names SQS's callers alone.
    if key.endswith("alias/aws/sqs"):
        return "EventBridge may not use the key alias/aws/sqs that encrypts it"
    return None


def _statements(policy: str) -> list[Mapping[str, Any]]:
    found = json.loads(policy or "{}").get("Statement") or []
    return [found] if isinstance(found, dict) else list(found)


def _allows_eventbridge(statement: Mapping[str, Any]) -> bool:
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


def machines_below(
    aws: Callable[[str], Any], nodes: Mapping[str, Node] | Unknown
) -> dict[str, Any]:
    """Read what AWS knows of the nodes: instances, their groups, EKS's own among these."""
    wanted = then(nodes, lambda found: [n.instance_id for n in found.values() if n.instance_id])
    instances = then_any(wanted, lambda ids: account.instances(aws("ec2"), ids))
    here = not isinstance(instances, Unknown)
    group_of = then_any(
        wanted, lambda ids: account.seen_here(account.group_of(aws("autoscaling"), ids), known=here)
    )
    groups = then_any(group_of, lambda held: account.every_group(aws("autoscaling"), held.values()))
    return {
        "instances": instances,
        "statuses": then_any(instances, lambda found: account.statuses(aws("ec2"), found)),
        "group_of": group_of,
        "groups": groups,
        **changes_of(aws, groups),
        "managed_node_groups": then(
            groups,
            lambda found: (
                account.managed_node_groups(aws("eks"), found.values())
                if any(group.managed_node_group for group in found.values())
                else {}
            ),
        ),
    }


def changes_of(
    aws: Callable[[str], Any], groups: Mapping[str, ScalingGroup] | Unknown
) -> dict[str, Any]:
    """Read what groups start next, and what lowers or exchanges their machines."""
    return {
        "templates": then_any(
            groups, lambda found: account.templates(aws("ec2"), aws("autoscaling"), found.values())
        ),
        "scale_ins": then_any(groups, lambda found: account.scale_ins(aws("autoscaling"), found)),
        "refreshes": then_any(groups, lambda found: account.refreshes(aws("autoscaling"), found)),
    }


def cluster_of(machinery: Mapping[str, Any], context: str) -> str | None:
    """Return what EKS calls the cluster of some machines."""
    return eks_cluster(
        mapping_of(machinery["groups"]).values(),
        mapping_of(machinery["instances"]).values(),
        context,
    )


def around(
    aws: Callable[[str], Any],
    machinery: Mapping[str, Any],
    cluster: str | None,
    region: str | None,
    subnets: Collection[str] = (),
) -> dict[str, Any]:
    """Read the account around the machines: what a replacement needs, what AWS has announced."""
    instances, groups = machinery["instances"], machinery["groups"]
    held, owned = mapping_of(instances), mapping_of(groups)
    named = {subnet for group in owned.values() for subnet in group.subnets}
    named |= {each.subnet for each in held.values() if each.subnet} | set(subnets)
    plane = answer_or_reason(lambda: surroundings.control_plane(aws("eks"), cluster))
    of_plane = None if isinstance(plane, Unknown) else plane.arn.split(":")[3]
    types = {each.type for each in held.values() if each.lifecycle is None}
    known = then(instances, lambda _: surroundings.subnets(aws("ec2"), named) if named else {})
    return {
        "subnets": known,
        **_ways(aws, known),
        "machine_quotas": then(
            instances,
            lambda _: (
                surroundings.machine_quotas(aws("service-quotas"), aws("ec2"), types)
                if any(map(vcpu_quota, types))
                else {}
            ),
        ),
        "disk_quota": answer_or_reason(
            lambda: surroundings.disk_quota(aws("service-quotas"), aws("ec2"))
        ),
        "control_plane": plane,
        "upgrade_insights": then(
            plane, lambda found: surroundings.upgrade_insights(aws("eks"), found)
        ),
        "zonal_shifts": answer_or_reason(lambda: surroundings.zonal_shifts(aws("arc-zonal-shift"))),
        "aws_health": answer_or_reason(
            lambda: surroundings.aws_health(aws("health"), region or of_plane)
        ),
    }


def _ways(aws: Callable[[str], Any], subnets: Mapping[str, Subnet] | Unknown) -> dict[str, Any]:
    """Read how subnets reach AWS; endpoints are asked for where one of them has no other way."""
    found = then_any(subnets, lambda known: surroundings.ways_out(aws("ec2"), known))

    def alone(ways: Mapping[str, WayOut]) -> tuple[VpcEndpoint, ...]:
        # A function's way out is no internet gateway.
        mine = {
            subnet.vpc
            for name, subnet in mapping_of(subnets).items()
            if name in ways and (ways[name].target or "igw-").startswith("igw-")
        }
        return surroundings.endpoints(aws("ec2"), mine) if mine else ()

    return {"ways_out": found, "vpc_endpoints": then(found, alone)}


def data_below(
    aws: Callable[[str], Any],
    volumes: tuple[Volume, ...] | Unknown,
    templates: Mapping[str, tuple[MachineTemplate, ...]] | Unknown,
    plane: ControlPlane | Unknown,
) -> dict[str, Any]:
    """Read Kafka's disks as EBS has them, and the keys that they and next machines' disks have."""
    disks = then(volumes, lambda found: read_disks(aws("ec2"), found))
    return {
        "volumes": volumes_at_ebs(volumes, disks),
        "disks": disks,
        "disk_checks": then_any(disks, lambda found: checks(aws("ec2"), found)),
        "disk_snapshots": then_any(disks, lambda found: snapshots(aws("ec2"), found)),
        "encryption_keys": keys_below(aws, disks, templates, plane),
    }


def joining_below(
    aws: Callable[[str], Any],
    api: Api,
    templates: Mapping[str, tuple[MachineTemplate, ...]] | Unknown,
    plane: ControlPlane | Unknown,
) -> dict[str, Any]:
    """Read by which roles the next machines come, and which the cluster knows."""

    def read_roles(found: Mapping[str, tuple[MachineTemplate, ...]]) -> dict[str, NodeRole | None]:
        started = _every(found)
        named = any(each.profile for each in started)
        return node_roles(aws("iam"), started) if named else {}

    roles = then(templates, read_roles)

    # Without a role to look for nobody is asked which the cluster knows.
    wanted = {role.name for role in mapping_of(roles).values() if role}
    if not wanted:
        return {"node_roles": roles, "admitted_roles": {}}
    admitted = then(plane, lambda found: admitted_roles(aws("eks"), api, found, wanted))
    return {"node_roles": roles, "admitted_roles": admitted}


def _every(templates: Mapping[str, tuple[MachineTemplate, ...]]) -> list[MachineTemplate]:
    return [each for group in templates.values() for each in group]


def keys_below(
    aws: Callable[[str], Any],
    disks: Mapping[str, Disk] | Unknown,
    templates: Mapping[str, tuple[MachineTemplate, ...]] | Unknown,
    plane: ControlPlane | Unknown,
) -> Mapping[str, EncryptionKey] | Unknown:
    """Read the keys of some disks and templates; where none is named nobody is asked."""
    started = _every(mapping_of(templates))

    def read_keys(found: Mapping[str, Disk]) -> dict[str, EncryptionKey]:
        named = any(disk.key for disk in found.values()) or any(each.keys for each in started)
        if not named:
            return {}
        return encryption_keys(aws("kms"), found.values(), started, account_id(plane))

    return then(disks, read_keys)


def account_id(plane: ControlPlane | Unknown) -> str | None:
    """Return the account that a cluster's ARN names."""
    return None if isinstance(plane, Unknown) else plane.arn.split(":")[4]


def queues(
    aws: Callable[[str], Any], handlers: tuple[TerminationHandler, ...]
) -> dict[str, TerminationQueue]:
    urls = {each.queue_url for each in handlers if each.queue_mode and each.queue_url}
    return {url: queue(aws("sqs"), aws("events"), url) for url in sorted(urls)}
