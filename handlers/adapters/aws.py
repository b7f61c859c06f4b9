"""Asks EC2, Auto Scaling and SQS, and reads secrets.

A secret is read when first needed and kept in memory alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from core.incidents.actions import HookResult
from core.incidents.observation import (
    GROUP_TAG,
    EbsVolume,
    GroupView,
    InstanceView,
    Mark,
    Ownership,
    ScheduledEvent,
    StatusView,
)
from handlers.adapters.calls import (
    CLIENT,
    ONE_TRY,
    PERHAPS_DONE,
    known_shape,
    of_aws,
    perhaps_done,
    portions,
)

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.paginator import DescribeAutoScalingGroupsPaginator
    from mypy_boto3_autoscaling.type_defs import AutoScalingGroupTypeDef
    from mypy_boto3_ec2.type_defs import InstanceStatusTypeDef, InstanceTypeDef


LONGEST_DELAY_SECONDS = 900
# On every volume that the EBS driver has made, and on none of an instance's own.
EBS_CSI_TAG = "ebs.csi.aws.com/cluster"
MOST_PROTECTED_AT_ONCE = 50
MOST_NAMES_PER_CALL = 50
# Auto Scaling's words for what it will not do now; anything else is a fault of ours or of AWS.
_REFUSALS = {"ValidationError", "ScalingActivityInProgress", "ResourceContention"}
_NO_SUCH_INSTANCE = {"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"}


class AwsCloud:
    """EC2 and Auto Scaling through boto3."""

    def __init__(self, region: str) -> None:
        self._ec2 = boto3.client("ec2", region_name=region, config=CLIENT)
        self._groups = boto3.client("autoscaling", region_name=region, config=CLIENT)
        self._once = boto3.client("autoscaling", region_name=region, config=ONE_TRY)
        self._zone_names: Mapping[str, str] | None = None

    @known_shape("AWS")
    def instance(self, instance_id: str) -> InstanceView | None:
        """Return an instance, or None when EC2 does not know it (any more)."""
        try:
            answer = self._ec2.describe_instances(InstanceIds=[instance_id])
        except ClientError as error:
            if error.response["Error"]["Code"] in _NO_SUCH_INSTANCE:
                return None
            raise
        found = [i for r in answer["Reservations"] for i in r.get("Instances", [])]
        return _instance(found[0]) if found else None

    @known_shape("AWS")
    def group(self, name: str) -> GroupView | None:
        """Return an Auto Scaling group, or None when it does not exist."""
        answer = self._groups.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        found = answer["AutoScalingGroups"]
        return _group(found[0]) if found else None

    @known_shape("AWS")
    def groups_of(self, whose: Ownership) -> tuple[GroupView, ...]:
        """Return every group of a cluster."""
        pages = self._groups.get_paginator("describe_auto_scaling_groups")
        return tuple(_group(g) for g in described_groups(pages, whose))

    def heartbeat(self, group: str, hook: str, instance_id: str, token: str | None) -> bool:
        """Keep a hook waiting; False when nothing waits there any more."""
        try:
            self._groups.record_lifecycle_action_heartbeat(
                AutoScalingGroupName=group, LifecycleHookName=hook, **_action(instance_id, token)
            )
        except ClientError as error:
            return _still_there(error)
        return True

    def complete_hook(
        self, group: str, hook: str, instance_id: str, token: str | None, result: HookResult
    ) -> bool:
        """Complete a hook; False when nothing waits there any more."""
        try:
            self._groups.complete_lifecycle_action(
                AutoScalingGroupName=group,
                LifecycleHookName=hook,
                LifecycleActionResult=result.value,
                **_action(instance_id, token),
            )
        except ClientError as error:
            return _still_there(error)
        return True

    def set_desired(self, group: str, desired: int) -> None:
        """Set a group's desired capacity."""
        self._groups.set_desired_capacity(
            AutoScalingGroupName=group, DesiredCapacity=desired, HonorCooldown=False
        )

    def terminate_in_group(self, instance_id: str, *, decrement: bool) -> str | None:
        """Terminate an instance through its group and hooks; return the group's words if it will
        not, None when it does.
        """
        try:
            self._once.terminate_instance_in_auto_scaling_group(
                InstanceId=instance_id, ShouldDecrementDesiredCapacity=decrement
            )
        except ClientError as error:
            if error.response["Error"]["Code"] in _REFUSALS:
                return error.response["Error"].get("Message") or str(error)
            if not perhaps_done(error):
                raise
        except PERHAPS_DONE:
            pass  # Asked again, it would lower the desired capacity again: the group shows it.
        return None

    def protect(self, group: str, instance_ids: Iterable[str], *, protected: bool) -> None:
        """Keep instances of a group from its scale-ins, or no longer."""
        for some in portions(sorted(instance_ids), MOST_PROTECTED_AT_ONCE):
            try:
                self._groups.set_instance_protection(
                    AutoScalingGroupName=group, InstanceIds=some, ProtectedFromScaleIn=protected
                )
            except ClientError as error:
                # One that is launched or leaves has AWS refuse all: alone it is skipped.
                _still_there(error)
                for each in some if len(some) > 1 else ():
                    self.protect(group, [each], protected=protected)

    @known_shape("AWS")
    def volumes_on(self, instance_id: str) -> tuple[str, ...]:
        """Return the EBS driver's volumes that EC2 has attached to an instance."""
        pages = self._ec2.get_paginator("describe_volumes").paginate(
            Filters=[
                {"Name": "attachment.instance-id", "Values": [instance_id]},
                {"Name": f"tag:{EBS_CSI_TAG}", "Values": ["true"]},
            ]
        )
        return tuple(
            volume["VolumeId"]
            for page in pages
            for volume in page["Volumes"]
            if any(
                a.get("InstanceId") == instance_id and a.get("State") != "detached"
                for a in volume.get("Attachments", [])
            )
        )

    @known_shape("AWS")
    def zone_names(self) -> Mapping[str, str]:
        """Return this account's name of each zone of the region by the zone's id."""
        # The mapping of an account never changes, so an environment asks once.
        if self._zone_names is None:
            zones = self._ec2.describe_availability_zones(AllAvailabilityZones=True)
            self._zone_names = {z["ZoneId"]: z["ZoneName"] for z in zones["AvailabilityZones"]}
        return self._zone_names


def described_groups(
    pages: DescribeAutoScalingGroupsPaginator, whose: Ownership
) -> Iterable[AutoScalingGroupTypeDef]:
    """Return Auto Scaling's words for every group of a cluster, each once."""
    marked = (pages.paginate(Filters=tag_filters(mark)) for mark in whose.marks)
    named = (
        pages.paginate(AutoScalingGroupNames=some)
        for some in portions(whose.scaling_groups, MOST_NAMES_PER_CALL)
    )
    found = {
        group["AutoScalingGroupName"]: group
        for answer in (*marked, *named)
        for page in answer
        for group in page["AutoScalingGroups"]
    }
    return found.values()


def tag_filters(mark: Mark) -> Any:
    """Return a mark as EC2 and Auto Scaling filter by it: all of its tags together."""
    return [
        {"Name": f"tag:{key}", "Values": list(values)}
        if values
        else {"Name": "tag-key", "Values": [key]}
        for key, values in mark.items()
    ]


def _action(instance_id: str, token: str | None) -> dict[str, str]:
    """Name a lifecycle action: the token, where known, never means a later one of the instance."""
    named = {"InstanceId": instance_id}
    return named if token is None else {**named, "LifecycleActionToken": token}


def _still_there(error: ClientError) -> bool:
    """Answer False for an action that is over: Auto Scaling says ValidationError for it."""
    if error.response["Error"]["Code"] == "ValidationError":
        return False
    raise error


def _instance(found: InstanceTypeDef) -> InstanceView:
    tags = {tag["Key"]: tag.get("Value", "") for tag in found.get("Tags", [])}
    return InstanceView(
        instance_id=found["InstanceId"],
        state=found["State"]["Name"],
        zone=found.get("Placement", {}).get("AvailabilityZone", ""),
        private_dns_name=found.get("PrivateDnsName", ""),
        group=tags.get(GROUP_TAG),
        tags=tags,
        # EC2 leaves it out for what was bought on demand.
        market=found.get("InstanceLifecycle", "on-demand"),
    )


def _group(found: AutoScalingGroupTypeDef) -> GroupView:
    return GroupView(
        name=found["AutoScalingGroupName"],
        desired=found["DesiredCapacity"],
        maximum=found["MaxSize"],
        instances={i["InstanceId"]: i["LifecycleState"] for i in found.get("Instances", [])},
        zones=tuple(found.get("AvailabilityZones", [])),
        protected=frozenset(
            i["InstanceId"] for i in found.get("Instances", []) if i.get("ProtectedFromScaleIn")
        ),
    )


class Queue:
    """One SQS queue through boto3."""

    def __init__(self, url: str, region: str) -> None:
        self._url = url
        self._sqs = boto3.client("sqs", region_name=region, config=CLIENT)

    def send(self, body: str, *, delay_seconds: float = 0.0) -> None:
        """Send a message that becomes visible after a delay."""
        delay = min(max(round(delay_seconds), 0), LONGEST_DELAY_SECONDS)
        of_aws(self._sqs.send_message(QueueUrl=self._url, MessageBody=body, DelaySeconds=delay))


def tick_message(incident_id: str, version: int) -> str:
    """Return the body of a tick: it is stale once the incident has another version."""
    return json.dumps({"incident_id": incident_id, "version": version})


# EC2 names at most so many instances in one question about their status.
MOST_STATUSES_PER_CALL = 100
# EC2 keeps a terminated instance on its list for about an hour.
_NO_SUCH_VOLUME = {"InvalidVolume.NotFound", "InvalidParameterValue"}


class Ec2Inventory:
    """EC2 through boto3."""

    def __init__(self, region: str) -> None:
        self._ec2 = boto3.client("ec2", region_name=region, config=CLIENT)

    @known_shape("EC2")
    def volume(self, volume_id: str) -> EbsVolume | None:
        """Return a volume, or None when EC2 does not know it (any more)."""
        try:
            answer = self._ec2.describe_volumes(VolumeIds=[volume_id])
        except ClientError as error:
            if error.response["Error"]["Code"] in _NO_SUCH_VOLUME:
                return None
            raise
        if not answer["Volumes"]:
            return None
        found = answer["Volumes"][0]
        attached = [a["InstanceId"] for a in found.get("Attachments", []) if "InstanceId" in a]
        return EbsVolume(
            volume_id=volume_id,
            instance_id=attached[0] if attached else None,
            zone=found.get("AvailabilityZone", ""),
            tags={tag["Key"]: tag.get("Value", "") for tag in found.get("Tags", [])},
        )

    @known_shape("EC2")
    def instance_states(self, whose: Ownership) -> Mapping[str, str]:
        """Return the state of every instance of a cluster, those that ended too."""
        pages = self._ec2.get_paginator("describe_instances")
        return {
            instance["InstanceId"]: instance["State"]["Name"]
            for mark in whose.instance_marks
            for page in pages.paginate(Filters=tag_filters(mark))
            for reservation in page["Reservations"]
            for instance in reservation.get("Instances", [])
        }

    @known_shape("EC2")
    def statuses(self, instance_ids: Sequence[str]) -> Mapping[str, StatusView]:
        """Return the checks and scheduled events of running instances; others are missing."""
        found: dict[str, StatusView] = {}
        for some in portions(instance_ids, MOST_STATUSES_PER_CALL):
            found |= self._some_statuses(some)
        return found

    def _some_statuses(self, instance_ids: list[str]) -> dict[str, StatusView]:
        pages = self._ec2.get_paginator("describe_instance_status").paginate(
            InstanceIds=instance_ids
        )
        try:
            return {s["InstanceId"]: _status(s) for page in pages for s in page["InstanceStatuses"]}
        except ClientError as error:
            if error.response["Error"]["Code"] == "InvalidInstanceID.NotFound":
                # One that EC2 has just forgotten hides the others until the next round.
                return {}
            raise


def _status(found: InstanceStatusTypeDef) -> StatusView:
    checks: Mapping[str, Mapping[str, Any]] = {
        "system": found.get("SystemStatus", {}),
        "instance": found.get("InstanceStatus", {}),
        "attached EBS": found.get("AttachedEbsStatus", {}),
    }
    return StatusView(
        instance_id=found["InstanceId"],
        events=tuple(
            ScheduledEvent(
                event_id=event.get("InstanceEventId", ""),
                code=event.get("Code", ""),
                description=event.get("Description", ""),
                not_before=_seconds(event.get("NotBefore")),
            )
            for event in found.get("Events", [])
        ),
        impaired={
            # Without a time it counts as long since.
            name: min(filter(None, map(_impaired_since, check.get("Details") or ())), default=0.0)
            for name, check in checks.items()
            if check.get("Status") == "impaired"
        },
    )


def _impaired_since(detail: Mapping[str, Any]) -> float | None:
    return _seconds(detail.get("ImpairedSince"))


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


# Somebody who sends wrong tokens must not make us ask AWS for each of them.
LEAST_AGE_SECONDS = 60.0


class Secret:
    """The string of a secret, by name or ARN."""

    def __init__(
        self, name: str, region: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        client = Config(connect_timeout=2, read_timeout=3, retries={"mode": "standard"})
        self._secrets = boto3.client("secretsmanager", region_name=region, config=client)
        self._clock = clock
        self._known: tuple[str, float] | None = None

    def value(self) -> str:
        """Return the secret, as first read."""
        return self._read() if self._known is None else self._known[0]

    def renew(self) -> str:
        """Return the secret read again, unless that was done a moment ago."""
        if self._known is not None and self._clock() - self._known[1] < LEAST_AGE_SECONDS:
            return self._known[0]
        return self._read()

    def _read(self) -> str:
        found: str = self._secrets.get_secret_value(SecretId=self._name)["SecretString"]
        self._known = (found, self._clock())
        return found
