"""What EC2, EC2 Auto Scaling, EKS, SQS and EventBridge answer of a world, as far as asked."""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import ClientError

from tests.unit.cli.survey.around import Around
from tests.unit.cli.survey.manifests import Item


class AwsAnswers:
    """One client for every service of the account that a world is in."""

    groups: dict[str, Item]
    hooks: dict[str, list[Item]]
    policies: dict[str, list[Item]]
    actions: dict[str, list[Item]]
    instances: dict[str, Item]
    member_of: dict[str, str]
    node_groups: dict[str, Item]
    rules: list[Item]
    events: dict[str, list[Item]]
    refreshes: dict[str, list[Item]]
    kept_seconds: int
    target: Item
    queue_attributes: Item
    impaired: dict[str, Item]
    around: Around
    # What the launch templates of all groups say; None: they are gone.
    template: Item | None
    launch_configurations: list[Item]
    modifications: list[Item]
    activities: list[Item]

    def client(self, service: str, region: str | None) -> Any:
        assert region in (None, "eu-north-1")
        return self

    def describe_instances(self, *, Filters: list[Item]) -> Item:  # noqa: N803
        (wanted,) = (each["Values"] for each in Filters if each["Name"] == "instance-id")
        found = [self.instances[name] for name in wanted if name in self.instances]
        return {"Reservations": [{"Instances": found}]}

    def describe_instance_status(self, *, InstanceIds: list[str]) -> Item:  # noqa: N803
        found = [
            {"InstanceId": name, "Events": self.events.get(name, []), **self.impaired.get(name, {})}
            for name in InstanceIds
        ]
        return {"InstanceStatuses": found}

    def describe_auto_scaling_instances(self, *, InstanceIds: list[str]) -> Item:  # noqa: N803
        return {
            "AutoScalingInstances": [
                {"InstanceId": name, "AutoScalingGroupName": self.member_of[name]}
                for name in InstanceIds
                if name in self.member_of
            ]
        }

    def describe_auto_scaling_groups(self, *, AutoScalingGroupNames: Any, **_: Any) -> Item:  # noqa: N803
        return {"AutoScalingGroups": [self.groups[name] for name in AutoScalingGroupNames]}

    def describe_scaling_activities(self, *, AutoScalingGroupName: str, **_: Any) -> Item:  # noqa: N803
        """Return what a group has tried, the newest first."""
        assert AutoScalingGroupName in self.groups
        return {"Activities": self.activities}

    def describe_lifecycle_hooks(self, *, AutoScalingGroupName: str) -> Item:  # noqa: N803
        return {"LifecycleHooks": self.hooks.get(AutoScalingGroupName, [])}

    def can_paginate(self, call: str) -> bool:
        return call != "describe_key_pairs"

    def get_paginator(self, call: str) -> Any:
        world = self

        class Pages:
            def paginate(self, **given: Any) -> list[Item]:
                if hasattr(Around, call):
                    return [getattr(world.around, call)(world, **given)]
                return [getattr(world, call)(**given)]

        return Pages()

    def describe_policies(self, *, AutoScalingGroupName: str) -> Item:  # noqa: N803
        return {"ScalingPolicies": self.policies.get(AutoScalingGroupName, [])}

    def describe_scheduled_actions(self, *, AutoScalingGroupName: str) -> Item:  # noqa: N803
        return {"ScheduledUpdateGroupActions": self.actions.get(AutoScalingGroupName, [])}

    def describe_instance_refreshes(self, *, AutoScalingGroupName: str) -> Item:  # noqa: N803
        return {"InstanceRefreshes": self.refreshes.get(AutoScalingGroupName, [])}

    def describe_launch_template_versions(self, **given: Any) -> Item:
        """Return a group's template as it is asked for, or that it is gone."""
        (version,) = given["Versions"]
        if self.template is None:
            error = {"Error": {"Code": "InvalidLaunchTemplateId.NotFound", "Message": "no"}}
            raise ClientError(error, "DescribeLaunchTemplateVersions")
        said = {"LaunchTemplateData": self.template, "VersionNumber": 1}
        return {"LaunchTemplateVersions": [said | {"Asked": version}]}

    def describe_launch_configurations(self, **_: Any) -> Item:
        return {"LaunchConfigurations": self.launch_configurations}

    def describe_volumes_modifications(self, *, Filters: list[Item]) -> Item:  # noqa: N803
        (wanted,) = (each["Values"] for each in Filters if each["Name"] == "volume-id")
        found = [each for each in self.modifications if each["VolumeId"] in wanted]
        return {"VolumesModifications": found}

    def describe_nodegroup(self, *, clusterName: str, nodegroupName: str) -> Item:  # noqa: N803
        assert clusterName == "shop"
        return {"nodegroup": {"nodegroupName": nodegroupName, **self.node_groups[nodegroupName]}}

    def describe_cluster(self, *, name: str) -> Item:
        return self.around.describe_cluster(name)

    def describe_target_groups(self, **given: Any) -> Item:
        return self.around.describe_target_groups(**given)

    def describe_target_group_attributes(self, *, TargetGroupArn: str) -> Item:  # noqa: N803
        return self.around.attributes(TargetGroupArn)

    def describe_load_balancer_attributes(self, *, LoadBalancerArn: str) -> Item:  # noqa: N803
        return self.around.attributes(LoadBalancerArn)

    def get_queue_attributes(self, **_: Any) -> Item:
        said = {"QueueArn": "arn:aws:sqs:q", "MessageRetentionPeriod": str(self.kept_seconds)}
        more = {key: value for key, value in self.queue_attributes.items() if value is not None}
        if "Policy" in more:
            more["Policy"] = json.dumps(more["Policy"])
        return {"Attributes": said | more}

    def list_rule_names_by_target(self, *, NextToken: str = "0", **_: Any) -> Item:  # noqa: N803
        """Name a rule a page."""
        index = int(NextToken)
        following = {"NextToken": str(index + 1)} if index + 1 < len(self.rules) else {}
        return {"RuleNames": [str(index)] if index < len(self.rules) else [], **following}

    def list_targets_by_rule(self, *, Rule: str) -> Item:  # noqa: N803
        assert int(Rule) < len(self.rules)
        return {"Targets": [{"Id": "it", "Arn": "arn:aws:sqs:q", **self.target}]}

    def describe_rule(self, *, Name: str) -> Item:  # noqa: N803
        return {"EventPattern": json.dumps(self.rules[int(Name)]), "State": "ENABLED"}
