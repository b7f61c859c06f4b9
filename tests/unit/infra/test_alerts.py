"""infra.alerts: alarms on a topic CloudWatch can use, over metrics that exist, with runbooks.

data/*-metrics.txt are what Strimzi's reporter said of a running broker-and-controller and of a
running worker with a source and a sink, everything allowed: a line names the beginnings of metrics,
which end in `_`, and then their endings.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.cluster import Metrics
from core.cluster.operated import operated_cluster
from core.ground import constants
from infra.alerts.alarms import Alarm, alarms
from infra.alerts.metrics import CONNECT_ALLOW, KAFKA_ALLOW, metrics_config, pod_monitor_spec
from local.kubernetes.strimzi_config import METRICS_PORT_NAME
from tests.every_case import every_case
from tests.unit.infra.programs import description, prometheus_alerts, run_layer, spec
from tests.unit.infra.recording import Recorded, Resource
from tests.unit.infra.variants import recorded

TOPIC = "arn:aws:sns:us-east-1:123456789012:on-call"
ALARMS = alarms(operated_cluster(spec()))
BY_KEY = {alarm.key: alarm for alarm in ALARMS}
every_alarm = pytest.mark.parametrize("alarm", ALARMS, ids=BY_KEY)


def made(layers: dict[str, Recorded]) -> dict[str, Resource]:
    found = layers["operations"].of("cloudwatch/metricAlarm:MetricAlarm")
    return {alarm.inputs["name"]: alarm for alarm in found}


def operations(layers: dict[str, Recorded], **changed: Any) -> Recorded:
    references = {f"test-{name}": run.outputs for name, run in layers.items()}
    return run_layer("operations", description(**changed), references)


def watched(layers: Mapping[str, Recorded], name: str, dimension: str) -> set[str]:
    """Return the values of a dimension under which a metric is watched."""
    return {
        query["metric"]["dimensions"][dimension]
        for alarm in made(layers).values()
        for query in alarm.inputs["metricQueries"]
        if query.get("metric", {}).get("metricName") == name
    }


@every_alarm
def test_an_alarm_says_what_it_means_where_to_read_on_and_what_silence_means(alarm: Alarm) -> None:
    text = alarm.description("https://wiki.example")
    assert text.startswith(f"{alarm.severity.upper()}: ")
    assert f" Runbook: https://wiki.example/{alarm.runbook}.md " in text
    assert alarm.meaning.endswith(".")
    assert text.endswith(alarm.missing.reason)
    assert len(text) <= 1024  # CloudWatch's limit


def test_every_queue_with_dead_letters_is_watched(cache: None) -> None:
    layers = recorded("karpenter")
    letters = {
        queue.inputs["name"]
        for layer in layers.values()
        for queue in layer.of("sqs/queue:Queue")
        if queue.inputs["name"].endswith("-dlq")
    }
    assert len(letters) == 5
    assert watched(layers, "ApproximateNumberOfMessagesVisible", "QueueName") == letters


@pytest.mark.parametrize("metric", ["Errors", "Throttles", "Duration"])
def test_every_function_is_watched(layers: dict[str, Recorded], metric: str) -> None:
    functions = {
        function.inputs["name"]
        for recorded in layers.values()
        for function in recorded.of("lambda/function:Function")
    }
    assert watched(layers, metric, "FunctionName") == functions


def test_a_function_is_measured_against_the_time_it_has(layers: dict[str, Recorded]) -> None:
    for layer in layers.values():
        for function in layer.of("lambda/function:Function"):
            alarm = made(layers)[f"{function.inputs['name']}-duration"]
            assert alarm.inputs["threshold"] == 800 * function.inputs["timeout"]


def test_every_alarm_reaches_the_one_topic_with_its_severity(layers: dict[str, Recorded]) -> None:
    topic = layers["operations"].outputs["alerts_topic"]
    assert topic.endswith(":test-orders-alerts")
    found = {key.removeprefix("test-orders-"): each.inputs for key, each in made(layers).items()}
    assert {key: each["tags"] for key, each in found.items()} == {
        key: {"severity": alarm.severity} for key, alarm in BY_KEY.items()
    }
    assert all(each["alarmActions"] == [topic] for each in found.values())
    # The end of a count is not the end of the trouble.
    untold = {key for key, each in found.items() if not each["okActions"]}
    assert untold == {"incidents-retained", "incidents-lost", "pages-sent"}


def test_what_no_data_means_is_chosen_for_each_kind_of_alarm(layers: dict[str, Recorded]) -> None:
    chosen = {name: alarm.inputs["treatMissingData"] for name, alarm in made(layers).items()}
    expected = {"test-orders-cluster-unhealthy", "test-orders-sweep-silent"}
    assert {name for name, value in chosen.items() if value == "breaching"} == expected
    assert {name for name, value in chosen.items() if value == "ignore"} == {
        name for name in chosen if name.endswith("-dlq")
    }


def test_what_the_functions_count_is_watched_by_name(layers: dict[str, Recorded]) -> None:
    own = {
        (query["metric"]["metricName"], json.dumps(query["metric"]["dimensions"]))
        for alarm in made(layers).values()
        for query in alarm.inputs["metricQueries"]
        if query.get("metric", {}).get("namespace") == constants.NAMESPACE
    }
    prefix = json.dumps({constants.CLUSTER_DIMENSION: "test-orders"})
    assert own == {
        (name, prefix)
        for name in (
            constants.INCIDENTS_RETAINED,
            constants.INCIDENTS_LOST,
            constants.PAGES_SENT,
            constants.LEDGER_ERRORS,
            constants.STORIES_DELAYED,
            constants.WEBHOOKS_REFUSED,
            constants.CLUSTER_HEALTH,
            constants.VOLUMES_OUT_OF_SLOTS,
            constants.VOLUMES_INSTANCE_BOUND,
            constants.VOLUMES_REFUSED,
            constants.VOLUMES_DRIFTED,
            constants.VOLUMES_STUCK,
            constants.VOLUMES_UNKNOWN,
        )
    }


def test_several_series_are_added_up_and_one_stands_for_itself(layers: dict[str, Recorded]) -> None:
    for alarm in made(layers).values():
        queries = alarm.inputs["metricQueries"]
        returned = [query for query in queries if query["returnData"]]
        assert len(returned) == 1
        assert ("expression" in returned[0]) == (len(queries) > 1)


def test_limits_follow_the_descriptions_timeouts() -> None:
    slow = spec(timings={"lambda_timeout_seconds": 30, "queue_visibility_timeout_seconds": 600})
    found = {a.key: a for a in alarms(operated_cluster(slow))}
    assert found["sweep-duration"].threshold == 24_000
    assert found["ticks-age"].threshold == 1200


def test_only_our_alarms_may_speak_and_the_key_lets_them(layers: dict[str, Recorded]) -> None:
    recorded = layers["operations"]
    topic = recorded.one("sns/topic:Topic").inputs
    key = recorded.one("kms/key:Key", "alerts-key")
    assert topic["kmsMasterKeyId"] == "alerts-key-key"
    assert key.inputs["enableKeyRotation"]
    policy = recorded.one("sns/topicPolicy:TopicPolicy")
    for statements in (key.policy_statements, policy.policy_statements):
        (ours,) = [s for s in statements if s["Sid"] == "OurAlarmsMaySpeak"]
        assert ours["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
        assert ours["Condition"] == {
            "StringEquals": {"aws:SourceAccount": "123456789012"},
            "ArnLike": {
                "aws:SourceArn": "arn:aws:cloudwatch:us-east-1:123456789012:alarm:test-orders-*"
            },
        }
    (denied,) = [s for s in policy.policy_statements if s["Effect"] == "Deny"]
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_an_address_is_subscribed_once(layers: dict[str, Recorded]) -> None:
    recorded = operations(layers, alerts={"email": ["a@example.com", "b@example.com"]})
    found = recorded.of("sns/topicSubscription:TopicSubscription")
    assert {each.inputs["endpoint"] for each in found} == {"a@example.com", "b@example.com"}
    assert {each.inputs["protocol"] for each in found} == {"email"}


def test_a_topic_of_somebody_elses_is_used_as_it_is(layers: dict[str, Recorded]) -> None:
    recorded = operations(layers, alerts={"sns_topic_arn": TOPIC})
    assert not recorded.of("sns/topic:Topic")
    assert not recorded.of("kms/key:Key")
    assert made({"operations": recorded}).popitem()[1].inputs["alarmActions"] == [TOPIC]
    # Its key may be another account's (docs/how-to/alerts.md), whose policy alone is not enough.
    tick = recorded.one("iam/rolePolicy:RolePolicy", "handlers-tick-policy").policy_statements
    (encrypts,) = (each for each in tick if each["Sid"] == "EncryptTheCall")
    assert encrypts["Resource"] == ["arn:aws:kms:us-east-1:*:key/*"]


def test_without_slack_nobody_waits_for_it() -> None:
    keys = {a.key for a in alarms(operated_cluster(spec(slack=None)))}
    assert not {key for key in keys if "slack" in key or "stories" in key}
    assert "tick-errors" in keys


def test_alarms_can_be_left_to_others(layers: dict[str, Recorded]) -> None:
    recorded = operations(layers, alerts={"enabled": False})
    assert not made({"operations": recorded})
    assert "alerts_topic" not in recorded.outputs


def test_the_overview_names_every_alarm_that_is_made(layers: dict[str, Recorded]) -> None:
    page = layers["operations"].one("cloudwatch/dashboard:Dashboard").inputs
    widgets = json.loads(page["dashboardBody"])["widgets"]
    shown = {arn.rpartition(":")[2] for arn in widgets[0]["properties"]["alarms"]}
    assert shown == set(made(layers))
    assert all(re.fullmatch(r"alarm|metric", widget["type"]) for widget in widgets)


RUNBOOKS = Path(__file__).parents[3] / "docs" / "runbooks"
# A runbook of an incident's page begins with its key in code; tests/unit/docs hold its form.
PAGES = {
    page.stem: text
    for page in RUNBOOKS.glob("*.md")
    if not (text := page.read_text()).startswith("# `")
}
EVERYTHING = spec(connect={}, probe={"image": "probe:1"}, eviction_gate={"image": "gate:1"})
ALERTS = set(prometheus_alerts(EVERYTHING))
LISTED_ALARMS = {alarm.runbook for alarm in alarms(operated_cluster(spec()))}


def test_every_alert_and_alarm_has_a_page_and_every_page_is_ones() -> None:
    assert set(PAGES) == ALERTS | LISTED_ALARMS


@every_case("name", sorted(PAGES))
def test_a_page_says_what_it_means_where_to_look_what_to_do_and_when_it_ends(name: str) -> None:
    title, meaning, *_ = PAGES[name].splitlines()
    assert title == f"# {name}" or name in LISTED_ALARMS
    assert meaning.rstrip("|").strip()
    headings = re.findall(r"^## (.+)$", PAGES[name], re.MULTILINE)
    assert [each for each in headings if each in ("Look", "Do")] == ["Look", "Do"]
    assert headings[-1] in ("Ends", "Fixed when")


@every_case("name", sorted(PAGES))
def test_a_pages_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGES[name]):
        assert (RUNBOOKS / target).is_file(), target


DATA = Path(__file__).parent / "data"


def exposed(file: str) -> set[str]:
    found = set()
    # A line is continued by those that are indented.
    for line in re.findall(r"^\S.*(?:\n .*)*", (DATA / file).read_text(), re.MULTILINE):
        beginnings = [word for word in line.split() if word.endswith("_")]
        endings = [word for word in line.split() if not word.endswith("_")]
        found |= {beginning + ending for beginning in beginnings for ending in endings}
    return found


KAFKA = exposed("kafka-4.2.0-metrics.txt")
CONNECT = exposed("connect-4.2.0-metrics.txt")
NEEDED = [
    "kafka_server_broker_metadata_metrics_metadata_load_error_count",
    "kafka_server_broker_metadata_metrics_metadata_apply_error_count",
    "kafka_controller_kafkacontroller_metadataerrorcount",
    "kafka_server_replicafetchermanager_maxlag",
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_log_logmanager_remaininglogstorecover",
    "kafka_controller_kafkacontroller_fencedbrokercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_controllerstats_uncleanleaderelectionspersec_total",
    "kafka_server_raft_metrics_current_state_info",
    "kafka_server_raft_metrics_current_leader",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_replicamanager_underminisrpartitioncount",
    "kafka_cluster_partition_underreplicated",
    "kafka_server_brokertopicmetrics_replicationbytesinpersec_total",
    "kafka_server_kafkaserver_brokerstate",
]


def allowed(name: str, allow: tuple[str, ...]) -> bool:
    """Say whether a name is let through, as the reporter asks: before Prometheus's own ending."""
    bare = name.removesuffix("_total").removesuffix("_info")
    return any(re.fullmatch(expression, bare) for expression in allow)


@every_case(
    ("names", "expression"),
    [*((KAFKA, each) for each in KAFKA_ALLOW), *((CONNECT, each) for each in CONNECT_ALLOW)],
    ids=(*KAFKA_ALLOW, *CONNECT_ALLOW),
)
def test_every_entry_names_something_that_is_there(names: set[str], expression: str) -> None:
    assert any(re.fullmatch(expression, name) for name in names)


@every_case("name", NEEDED)
def test_what_a_rotation_and_an_alert_read_is_allowed(name: str) -> None:
    assert allowed(name, KAFKA_ALLOW)


def test_the_list_is_a_choice_and_not_everything() -> None:
    shown = [name for name in KAFKA if allowed(name, KAFKA_ALLOW)]
    assert 50 < len(shown) < len(KAFKA) / 4


def test_the_user_adds_to_the_list_and_may_turn_it_off() -> None:
    config = metrics_config(Metrics(allow=("kafka_server_quota_.*",)), KAFKA_ALLOW)["metricsConfig"]
    assert config["type"] == "strimziMetricsReporter"
    assert config["values"]["allowList"] == [*KAFKA_ALLOW, "kafka_server_quota_.*"]
    assert metrics_config(Metrics(enabled=False), KAFKA_ALLOW) == {}


def test_a_pod_monitor_finds_one_resources_pods_by_the_port_they_name() -> None:
    spec = pod_monitor_spec("orders", "Kafka")
    expected = {"strimzi.io/cluster": "orders", "strimzi.io/kind": "Kafka"}
    assert spec["selector"]["matchLabels"] == expected
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] == METRICS_PORT_NAME
