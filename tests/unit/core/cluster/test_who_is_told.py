"""Whom a description has alarms reach."""

from __future__ import annotations

from typing import Any

import pytest

from core.cluster import parse
from tests.unit.core.cluster.test_cluster import changed, problems

TOPIC = "arn:aws:sns:us-east-1:123456789012:on-call"


@pytest.mark.parametrize(
    ("alerts", "words"),
    [
        pytest.param({"email": ["on-call"]}, ("alerts.email.0", "on-call"), id="no address"),
        pytest.param(
            {"sns_topic_arn": "on-call"}, ("alerts.sns_topic_arn", "on-call"), id="no arn"
        ),
        pytest.param(
            {"sns_topic_arn": TOPIC.replace("us-east-1", "eu-west-1")},
            ("eu-west-1", "of us-east-1", "name one there"),
            id="another region",
        ),
        pytest.param(
            {"sns_topic_arn": TOPIC, "email": ["a@example.com"]},
            ("somebody else's", "subscribe the addresses there"),
            id="both",
        ),
        pytest.param(
            {"runbooks_url": "https://x/"}, ("alerts.runbooks_url",), id="a slash too many"
        ),
    ],
)
def test_who_is_told_must_be_somebody_an_alarm_can_reach(
    alerts: dict[str, Any], words: tuple[str, ...]
) -> None:
    (sentence,) = problems(changed("alerts", alerts))
    for word in words:
        assert word in sentence


def test_a_topic_of_ones_own_or_addresses_are_taken() -> None:
    assert parse(changed("alerts", {"sns_topic_arn": TOPIC})).alerts.sns_topic_arn == TOPIC
    assert parse(changed("alerts", {"email": ["a@example.com"]})).alerts.email == ("a@example.com",)
