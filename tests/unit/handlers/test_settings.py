from __future__ import annotations

import base64

import pytest

from core.errors import InvalidInput
from core.window import Window
from handlers.settings import Settings

PEM = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
ENVIRONMENT = {
    "STILLWATER_PREFIX": "local-orders",
    "STILLWATER_CLUSTER": "orders",
    "STILLWATER_NAMESPACE": "kafka",
    "STILLWATER_REGION": "us-east-1",
    "STILLWATER_LEDGER_TABLE": "local-orders-incidents",
    "STILLWATER_ARCHIVE_BUCKET": "local-orders-incidents-123456789012",
    "STILLWATER_TICKS_QUEUE_URL": "http://sqs/ticks",
    "STILLWATER_NTH_QUEUE_URL": "http://sqs/nth",
    "STILLWATER_EKS_CLUSTER": "local-orders",
    "STILLWATER_EKS_ENDPOINT": "https://api:6443",
    "STILLWATER_EKS_CA": base64.b64encode(PEM.encode()).decode(),
    "STILLWATER_KAFKA_BOOTSTRAP": "kafka:10010, kafka:10020",
    "STILLWATER_DRAIN_ROUTE": "held",
    "STILLWATER_SCALE_IN": "restore",
    "STILLWATER_ISR_MARGIN": "1",
    "STILLWATER_TICK_INTERVAL_S": "20",
    "STILLWATER_HOLD_LIMIT_S": "14400",
    "STILLWATER_HEARTBEAT_TIMEOUT_S": "900",
    "STILLWATER_SESSION_TIMEOUT_S": "9",
    "STILLWATER_POST_CONDITION_HOLD_S": "30",
    "STILLWATER_POST_CONDITION_WAIT_S": "1800",
    "STILLWATER_HOOK_LIMIT_S": "54000",
    "STILLWATER_FORWARD_AGAIN_S": "530",
    "STILLWATER_DRAIN_LIFE_S": "4610",
    "STILLWATER_PLANNED_MARGIN_S": "21600",
    "STILLWATER_GATE": "isr",
    "STILLWATER_MAINTENANCE": "any",
}


def test_the_environment_becomes_settings() -> None:
    settings = Settings.from_env(ENVIRONMENT)
    assert settings.eks_ca_pem == PEM
    assert settings.kafka_bootstrap == ("kafka:10010", "kafka:10020")
    assert settings.policy.hold_limit_seconds == 14_400
    assert settings.policy.isr_margin == 1
    assert settings.managed_tag == "aws-node-termination-handler/local-orders"
    assert settings.late_seconds == 60


def test_a_tick_is_never_late_before_the_longest_tick_is_over() -> None:
    quick = Settings.from_env({**ENVIRONMENT, "STILLWATER_TICK_INTERVAL_S": "2"})
    assert quick.late_seconds == 45


def test_a_broker_is_watched_for_at_least_its_session_timeout() -> None:
    short = Settings.from_env({**ENVIRONMENT, "STILLWATER_POST_CONDITION_HOLD_S": "1"})
    assert short.policy.post_condition_hold_seconds == 9


def test_the_region_falls_back_to_the_functions_own() -> None:
    environment = {k: v for k, v in ENVIRONMENT.items() if k != "STILLWATER_REGION"}
    assert Settings.from_env({**environment, "AWS_REGION": "eu-west-1"}).region == "eu-west-1"
    with pytest.raises(InvalidInput, match="Neither STILLWATER_REGION nor AWS_REGION is set"):
        Settings.from_env(environment)


@pytest.mark.parametrize("missing", sorted(set(ENVIRONMENT) - {"STILLWATER_REGION"}))
def test_a_missing_variable_is_one_sentence(missing: str) -> None:
    environment = {k: v for k, v in ENVIRONMENT.items() if k != missing}
    with pytest.raises(InvalidInput) as raised:
        Settings.from_env(environment)
    assert len(raised.value.problems) == 1
    assert raised.value.problems[0].startswith(f"Environment variable {missing} is not set; ")


WRONG = [
    ("STILLWATER_TICK_INTERVAL_S", "soon", "must be a number"),
    ("STILLWATER_HOLD_LIMIT_S", "-1", "must be a number"),
    ("STILLWATER_HOLD_LIMIT_S", "inf", "must be a number"),
    ("STILLWATER_DRAIN_ROUTE", "sideways", "held or direct"),
    ("STILLWATER_EKS_CA", "not base64!", "base64 of a PEM"),
    ("STILLWATER_GATE", "open", "isr or ready"),
    ("STILLWATER_MAINTENANCE", "someday 0 60", "days, the minute"),
    ("STILLWATER_MAINTENANCE", "sat,sun 180", "days, the minute"),
]


@pytest.mark.parametrize(("name", "value", "complaint"), WRONG)
def test_a_wrong_value_is_one_sentence(name: str, value: str, complaint: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        Settings.from_env({**ENVIRONMENT, name: value})
    assert len(raised.value.problems) == 1
    assert complaint in raised.value.problems[0]


def test_a_window_becomes_the_policys() -> None:
    settings = Settings.from_env({**ENVIRONMENT, "STILLWATER_MAINTENANCE": "sat,sun 180 120"})
    window = Window(days=frozenset({"sat", "sun"}), start_minute=180, duration_minutes=120)
    assert settings.policy.maintenance == window
    assert Settings.from_env(ENVIRONMENT).policy.maintenance is None


def test_no_hook_is_believed_to_last_longer_than_aws_lets_it() -> None:
    long = Settings.from_env({**ENVIRONMENT, "STILLWATER_HOOK_LIMIT_S": "720000"})
    assert long.policy.hook_limit_seconds == 172_800


def test_slack_is_off_where_no_queue_is_named() -> None:
    assert Settings.from_env(ENVIRONMENT).stories_queue_url is None
    told = Settings.from_env({**ENVIRONMENT, "STILLWATER_STORIES_QUEUE_URL": "http://sqs/stories"})
    assert told.stories_queue_url == "http://sqs/stories"
