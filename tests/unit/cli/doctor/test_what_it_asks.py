"""The doctor says what its description, its live Kafka and a pause say, each fault once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import boto3
import pytest

from cli.doctor import examine as examining
from cli.target import Target
from core.cluster import ClusterSpec, parse
from core.incidents.joining import Pause
from tests.unit.core.checks.test_one_fault import OneKafka
from tests.unit.infra.programs import description


class LivingAccount:
    """An account of which nothing is read, with the API server of one paused Kafka."""

    def __init__(self, target: Target, _wanted: object) -> None:
        self._kafka = OneKafka(target.spec)
        self._kafka.item["metadata"]["annotations"] = {"strimzi.io/pause-reconciliation": "true"}

    def number(self) -> str:
        return "111122223333"

    def api(self) -> OneKafka:
        return self._kafka

    def readers(self) -> list[Any]:
        return []


def said(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often the doctor says each check of a live cluster, drift aside."""
    monkeypatch.setattr(examining, "LiveAccount", LivingAccount)
    monkeypatch.setattr(examining, "_surroundings", lambda *_: [])
    pause = Pause("ann", "an upgrade", 0)
    monkeypatch.setattr(examining.Pauses, "current", lambda *_: pause)
    target = Target(spec, boto3.Session("AKIAEXAMPLE", "none", region_name=spec.region))
    found = examining.examine(target).findings
    return Counter(each.check for each in found if each.check != "drift")


def test_each_source_is_asked_and_a_fault_of_two_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = said(parse(description(kafka={"min_insync_replicas": 1})), monkeypatch)
    # Of the live Kafka, of both, of the description alone, of the ledger.
    expected = {"paused", "operator-missing", "min-insync", "quorum-grows", "pause"}
    assert {check: found[check] for check in expected} == dict.fromkeys(expected, 1)


def test_only_what_a_description_answers_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    meant = description(kafka={"min_insync_replicas": 1}, accept=["min-insync", "paused"])
    found = said(parse(meant), monkeypatch)
    assert found["min-insync"] == 0
    assert found["paused"] == found["accept-unused"] == 1
