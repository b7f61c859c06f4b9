"""infra.functions.termination and announcements: what is heard, where it goes, who drains."""

import copy
import json
from typing import Any

import pytest

from core.events import Ignored, instances, parse
from core.ground import naming
from infra.functions.termination import direct_rules, events_rules, our_groups
from tests.announcements import BODIES, load
from tests.every_case import every_case
from tests.unit.infra.programs import description, run_layer, spec
from tests.unit.infra.recording import ACCOUNT, Recorded

RULE, TARGET = "cloudwatch/eventRule:EventRule", "cloudwatch/eventTarget:EventTarget"
QUEUE, QUEUE_POLICY = "sqs/queue:Queue", "sqs/queuePolicy:QueuePolicy"
OUR_ROLES = f"arn:aws:iam::{ACCOUNT}:role/test-orders-*"
FOUNDATION = {"eks_endpoint": "https://eks.example", "eks_ca": "Y2E=", "vpc_id": "vpc-1"}


@pytest.fixture
def held(layers: dict[str, Recorded]) -> Recorded:
    return layers["platform"]


@pytest.fixture(scope="module")
def direct() -> Recorded:
    raw = description(drain_route="direct")
    return run_layer("platform", raw, {"test-foundation": FOUNDATION})


def patterns(recorded: Recorded) -> dict[str, dict[str, Any]]:
    return {
        rule.inputs["name"].removeprefix("test-orders-"): json.loads(rule.inputs["eventPattern"])
        for rule in recorded.of(RULE)
    }


def targets(recorded: Recorded) -> dict[str, str]:
    return {
        target.inputs["rule"].removeprefix("test-orders-"): target.inputs["targetId"]
        for target in recorded.of(TARGET)
    }


def release_values(recorded: Recorded) -> dict[str, Any]:
    return dict(recorded.one("helm.sh/v3:Release", "nth-release").inputs["values"])


def nth_actions(recorded: Recorded) -> set[str]:
    statements = recorded.one("iam/rolePolicy:RolePolicy", "nth-policy").policy["Statement"]
    return {action for statement in statements for action in statement["Action"]}


OUR_GROUPS = [{"prefix": "test-orders-controller-"}, {"prefix": "test-orders-broker-"}]


def test_auto_scaling_events_are_taken_by_group_and_others_whole(held: Recorded) -> None:
    for pattern in patterns(held).values():
        named = pattern.get("detail", {}).get("AutoScalingGroupName")
        assert named == (OUR_GROUPS if pattern["source"] == ["aws.autoscaling"] else None)
    assert patterns(held)["terminate"]["detail"]["LifecycleHookName"] == ["drain", "gate"]


def test_a_group_is_named_as_its_rule_expects() -> None:
    begins = [group["prefix"] for group in OUR_GROUPS]
    for pool in spec().pools:
        name = naming.auto_scaling_group(spec().prefix, pool.name, "us-east-1a")
        assert [name.startswith(b) for b in begins].count(True) == 1


def test_every_kind_of_announcement_has_its_rule(held: Recorded) -> None:
    assert {kind for p in patterns(held).values() for kind in p["detail-type"]} == {
        "EC2 Instance-terminate Lifecycle Action",
        *instances.ACTIVITIES,
        *instances.REFRESHES,
        *instances.NOTICES,
        *instances.BLOCK_EXPIRES,
        *instances.SHIFTS,
        "EBS Volume Notification",
        "AWS Health Event",
        "CloudWatch Alarm State Change",
    }


def test_no_rule_hears_what_asks_for_nothing(held: Recorded) -> None:
    heard = patterns(held)
    assert "running" not in heard["state-change"]["detail"]["state"]
    assert "available" not in heard["volume"]["detail"]["result"]
    expected = {"service": ["EBS", "EC2", "EKS"], "eventTypeCategory": ["scheduledChange"]}
    assert heard["health"]["detail"] == expected
    # A lost zone has been announced under MULTIPLE_SERVICES.
    assert heard["health-issue"]["detail"] == {"eventTypeCategory": ["issue"]}


def test_what_is_not_delivered_within_an_hour_is_a_dead_letter(held: Recorded) -> None:
    for target in held.of(TARGET):
        assert target.inputs["retryPolicy"]["maximumEventAgeInSeconds"] == 3600


def test_on_the_held_route_no_rule_reaches_the_termination_handler(held: Recorded) -> None:
    assert set(targets(held).values()) == {"events"}
    nth = held.one(QUEUE_POLICY, "termination-nth-policy").policy_statements
    assert [s["Sid"] for s in nth if s["Effect"] == "Allow"] == []


def test_on_the_direct_route_it_hears_aws_but_never_of_the_gate(direct: Recorded) -> None:
    fed = {rule for rule, queue in targets(direct).items() if queue == "nth"}
    assert fed == {"nth-terminate", "nth-spot", "nth-state-change", "nth-health"}
    expected = {"AutoScalingGroupName": OUR_GROUPS, "LifecycleHookName": ["drain"]}
    assert patterns(direct)["nth-terminate"]["detail"] == expected


def test_only_our_own_rules_may_send(held: Recorded) -> None:
    statements = held.one(QUEUE_POLICY, "termination-events-policy").policy_statements
    allow = next(s for s in statements if s["Effect"] == "Allow")
    assert allow["Principal"] == {"Service": "events.amazonaws.com"}
    sources = allow["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert len(sources) == len(held.of(RULE))


@pytest.mark.parametrize(
    ("layer", "policy", "senders"),
    [
        ("platform", "termination-events-policy", []),
        # Our own tick sends to the termination handler's queue by its role.
        ("platform", "termination-nth-policy", [OUR_ROLES]),
        ("operations", "stories-queue-policy", [OUR_ROLES]),
    ],
)
def test_nobody_else_may_send_what_is_believed_whatever_their_role_allows(
    layers: dict[str, Recorded], layer: str, policy: str, senders: list[str]
) -> None:
    recorded = layers[layer]
    statements = recorded.one(QUEUE_POLICY, policy).policy_statements
    denied = next(s for s in statements if s["Sid"] == "NobodyElseMaySend")
    assert (denied["Effect"], denied["Principal"]) == ("Deny", "*")
    known = denied["Condition"]["ArnNotLike"]
    assert known.get("aws:PrincipalArn", []) == senders
    rules = len(recorded.of(RULE)) if policy == "termination-events-policy" else 0
    assert len(known.get("aws:SourceArn", ())) == rules
    assert len(known) > 0


def test_the_termination_handler_hears_of_no_harmless_change(direct: Recorded) -> None:
    codes = patterns(direct)["nth-health"]["detail"]["eventTypeCode"]
    assert "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED" in codes
    assert not any("REBOOT" in code or "LIFECYCLE" in code for code in codes)


def test_a_target_waits_for_the_policy_without_which_events_are_lost(held: Recorded) -> None:
    for target in held.of(TARGET):
        assert "termination-events-policy" in target.depends_on


def test_what_cannot_be_delivered_is_a_dead_letter_our_rules_may_write(held: Recorded) -> None:
    letters = {t.inputs["deadLetterConfig"]["arn"].rpartition(":")[2] for t in held.of(TARGET)}
    assert letters == {"test-orders-events-dlq"}
    policy = held.one(QUEUE_POLICY, "termination-events-dead-letters-policy").policy_statements
    allowed = next(s for s in policy if s["Effect"] == "Allow")
    assert allowed["Action"] == "sqs:SendMessage"
    assert len(allowed["Condition"]["ArnEquals"]["aws:SourceArn"]) == len(held.of(RULE))
    for target in held.of(TARGET):
        assert "termination-events-dead-letters-policy" in target.depends_on


def test_every_queue_is_encrypted(layers: dict[str, Recorded]) -> None:
    queues = [queue for layer in layers.values() for queue in layer.of(QUEUE)]
    assert len(queues) > 5
    assert all(queue.inputs["sqsManagedSseEnabled"] for queue in queues)


def test_a_message_outlives_the_drain_it_asked_for(held: Recorded) -> None:
    queue = held.one(QUEUE, "termination-nth-queue").inputs
    receives = json.loads(queue["redrivePolicy"])["maxReceiveCount"]
    timings = spec().timings
    assert receives * queue["visibilityTimeoutSeconds"] > timings.nth_drain_timeout_seconds
    assert queue["messageRetentionSeconds"] > timings.nth_drain_timeout_seconds


def test_the_termination_handler_reads_its_queue_and_drains_our_nodes(held: Recorded) -> None:
    values = release_values(held)
    assert values["enableSqsTerminationDraining"]
    assert values["queueURL"].endswith("/test-orders-nth")
    assert values["checkTagBeforeDraining"]
    assert values["managedTag"] == "aws-node-termination-handler/test-orders"
    assert values["webhookTemplate"] == "{{ toJson . }}"
    # It never taints a running node out of service.
    assert values["enableOutOfServiceTaint"] is False


def test_its_drain_outlasts_the_pods_grace_and_its_exit_the_drain(held: Recorded) -> None:
    values = release_values(held)
    assert values["podTerminationGracePeriod"] == -1
    assert values["nodeTerminationGracePeriod"] > spec().timings.pod_grace_seconds
    assert values["terminationGracePeriodSeconds"] > values["nodeTerminationGracePeriod"]


def test_on_the_held_route_the_tick_keeps_hooks_alive(held: Recorded, direct: Recorded) -> None:
    assert "heartbeatInterval" not in release_values(held)
    assert "autoscaling:RecordLifecycleActionHeartbeat" not in nth_actions(held)
    assert "autoscaling:RecordLifecycleActionHeartbeat" in nth_actions(direct)
    interval = release_values(direct)["heartbeatInterval"]
    assert 30 <= interval < spec().timings.hook_heartbeat_timeout_seconds


RULES = events_rules(our_groups("test-orders", ["controller", "broker"]))
# Sent by a group or a topic itself, without EventBridge.
UNRULED = {"asg-terminate-direct", "asg-terminate-through-sns"}
# A rule asks for what it can; the parser has the last word on these.
LET_THROUGH = {"asg-to-warm-pool", "asg-replace-root-volume", "health-operational-region"}


def heard(event: dict[str, Any], rules: Any = RULES) -> set[str]:
    # The twin's EventBridge brings all of moto's EC2: not for every worker that only collects this.
    from moto.events.models import EventPattern  # noqa: PLC0415

    from local.aws.events import matches  # noqa: PLC0415

    return {
        name
        for name, pattern in rules.items()
        if matches(EventPattern("", copy.deepcopy(dict(pattern))), event)
    }


@every_case("name", sorted(set(BODIES) - UNRULED))
def test_one_rule_hears_what_is_acted_on_and_none_the_rest(name: str) -> None:
    ignored = all(isinstance(found, Ignored) for found in parse(BODIES[name]))
    # A launch is announced by its outcome; our hooks hold none.
    expected = 0 if name == "asg-launch-hook" or (ignored and name not in LET_THROUGH) else 1
    assert len(heard(load(name))) == expected


@pytest.mark.parametrize(
    ("name", "change", "value"),
    [
        ("asg-terminate", "AutoScalingGroupName", "test-orders-2-broker-a"),
        ("asg-terminate", "LifecycleHookName", "their-hook"),
        ("group-launch-failed", "AutoScalingGroupName", "web"),
    ],
    ids=["another-cluster", "another-hook", "a-launch"],
)
def test_what_happens_to_others_is_not_heard(name: str, change: str, value: str) -> None:
    event = load(name)
    event["detail"][change] = value
    assert heard(event) == set()


def test_an_alarm_is_heard_by_any_metric_it_watches() -> None:
    event = load("alarm-of-another-metric")
    event["detail"]["configuration"]["metrics"] += load("alarm-stalled-volume")["detail"][
        "configuration"
    ]["metrics"]
    assert heard(event) == {"stalled-io"}


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("asg-terminate", "nth-terminate"),
        ("spot", "nth-spot"),
        ("state-stopping", "nth-state-change"),
        ("health-retirement", "nth-health"),
    ],
)
def test_on_the_direct_route_the_termination_handler_hears_four_kinds(name: str, rule: str) -> None:
    assert heard(load(name), direct_rules(our_groups("test-orders", ["broker"]))) == {rule}


@pytest.mark.parametrize("name", ["group-launch-failed", "zone-autoshift", "health-volume-lost"])
def test_the_termination_handler_never_hears_what_it_cannot_read(name: str) -> None:
    assert heard(load(name), direct_rules(our_groups("test-orders", ["broker"]))) == set()
