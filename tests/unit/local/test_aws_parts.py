"""The pure parts of the twin's AWS: agenda, batch answers, envelopes, rates, user data of nodes."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.elastic_block_store import EBSBackend

from local import locks
from local.aws import events, volumes
from local.aws.eks import node_config
from local.aws.instances import Agenda, again_and_again
from local.aws.queues import failed_ids
from local.kubernetes import cloud

IDS = ("a", "b", "c")


def test_what_is_due_runs_in_the_order_of_its_time() -> None:
    agenda, done = Agenda(), []
    agenda.add(2.0, lambda: done.append("second"))
    agenda.add(1.0, lambda: done.append("first"))
    agenda.add(9.0, lambda: done.append("later"))
    assert agenda.run_due(2.0) == 2
    assert done == ["first", "second"]


@pytest.mark.parametrize(
    ("answer", "error", "partial", "kept"),
    [
        pytest.param(b"null", False, True, "", id="nothing said, all went well"),
        pytest.param(b"", False, True, "", id="empty answer"),
        pytest.param(b'{"batchItemFailures": []}', False, True, "", id="empty list"),
        pytest.param(b'{"batchItemFailures": null}', False, True, "", id="null list"),
        pytest.param(
            b'{"batchItemFailures": [{"itemIdentifier": "b"}]}', False, True, "b", id="one failed"
        ),
        pytest.param(
            b'{"batchItemFailures": [{"itemIdentifier": "b"}]}', False, False, "", id="not asked"
        ),
        pytest.param(
            b'{"batchItemFailures": [{"itemIdentifier": "x"}]}', False, True, "abc", id="unknown id"
        ),
        pytest.param(
            b'{"batchItemFailures": [{"itemIdentifier": ""}]}', False, True, "abc", id="empty id"
        ),
        pytest.param(b'{"batchItemFailures": [{"id": "b"}]}', False, True, "abc", id="wrong key"),
        pytest.param(b'{"failures": []}', False, True, "abc", id="another shape"),
        pytest.param(b'"done"', False, True, "abc", id="a string"),
        pytest.param(b"{", False, True, "abc", id="not JSON"),
        pytest.param(b"{}", True, True, "abc", id="the function failed"),
        pytest.param(b"{}", True, False, "abc", id="the function failed, not asked"),
    ],
)
def test_messages_stay_when_the_function_says_so_or_cannot_be_understood(
    answer: bytes, error: bool, partial: bool, kept: str
) -> None:
    assert failed_ids(IDS, answer, error=error, partial=partial) == frozenset(kept)


def event(**changes: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "detail-type": "Test",
        "source": "test",
        "account": "123456789012",
        "time": 1795212261.5,
        "region": "us-east-1",
        "resources": [],
        "detail": {"n": 1},
        "ingestion-time": 1795212261.5,
        **changes,
    }


def test_the_envelope_has_the_account_and_whole_seconds() -> None:
    whole = events.envelope(event())
    assert whole["account"] == "123456789012"
    assert whole["time"] == "2026-11-20T22:04:21Z"
    assert "ingestion-time" not in whole


def test_a_target_gets_its_constant_input_or_all() -> None:
    assert events.payload({"Input": '{"k": 1}'}, event()) == {"k": 1}
    assert events.payload({}, event())["detail"] == {"n": 1}


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [
        ("rate(1 minute)", 60),
        ("rate(5 minutes)", 300),
        ("rate(1 hour)", 3600),
        ("cron(0 12 * * ? *)", None),
    ],
)
def test_a_rate_is_so_many_seconds(expression: str, seconds: int | None) -> None:
    assert events.interval_seconds(expression) == seconds


def test_a_rule_with_a_rate_fires_after_each_interval_while_it_is_enabled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # There is no function whose policy could let the rule in.
    monkeypatch.setattr(events, "check_delivery", lambda *_: None)
    backend = events.models.events_backends["999999999999"]["us-east-1"]
    rule = backend.put_rule("sweep", scheduled_expression="rate(1 minute)")
    arn = "arn:aws:lambda:us-east-1:999999999999:function:sweep"
    backend.put_targets("sweep", None, [{"Id": "f", "Arn": arn}])
    invoked: list[tuple[str, Any]] = []
    schedules = events.Schedules(
        events.EventDelivery(lambda target, content: invoked.append((target, content)))
    )
    try:
        assert [schedules.fire_due(now) for now in (0.0, 59.0)] == [[], []]
        assert schedules.fire_due(60.0) == [rule.arn]
        assert schedules.fire_due(61.0) == []
        backend.disable_rule("sweep", None)
        assert schedules.fire_due(200.0) == []
    finally:
        backend.remove_targets("sweep", None, ["f"])
        backend.delete_rule("sweep", None)
    ((target, content),) = invoked
    assert target == arn
    assert (content["source"], content["resources"]) == ("aws.events", [rule.arn])


def test_a_round_that_fails_is_not_the_last() -> None:
    stopped, rounds = threading.Event(), iter([KeyError("gone"), None])

    def each() -> None:
        failure = next(rounds)
        if failure is not None:
            raise failure
        stopped.set()

    again_and_again("schedules", each, 0.0, stopped)
    assert next(rounds, "both were done") == "both were done"


def test_a_managed_nodes_user_data_is_what_the_kubelet_reads() -> None:
    text = node_config(
        "prod",
        "system",
        {"tier": "system"},
        [{"key": "only", "value": "system", "effect": "NO_SCHEDULE"}],
    )
    config = cloud.parse(text)
    assert config.labels == {"eks.amazonaws.com/nodegroup": "system", "tier": "system"}
    assert [taint.as_json() for taint in config.taints] == [
        {"key": "only", "value": "system", "effect": "NoSchedule"}
    ]


def test_a_request_takes_the_turn_of_its_service() -> None:
    assert locks.turn("dynamodb") is locks.TABLES
    assert locks.turn("ec2") is locks.turn("autoscaling")


def test_a_modified_volume_passes_through_awss_states(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, str]] = []

    def put(*_: Any, detail: dict[str, str], resources: list[str], **__: Any) -> None:
        said.append((detail["result"], resources[0]))

    monkeypatch.setattr(events, "put", put)
    monkeypatch.setattr(EBSBackend, "modify_volume", EBSBackend.modify_volume)
    described = EBSBackend.describe_volumes_modifications
    monkeypatch.setattr(EBSBackend, "describe_volumes_modifications", described)
    agenda = Agenda()
    volumes.install(agenda)
    volume = SimpleNamespace(
        id="vol-1", size=10, iops=3000, throughput=None, volume_type="gp3", modifications=[]
    )
    backend = SimpleNamespace(region_name="us-east-1", account_id="1", get_volume=lambda _: volume)
    arn = "arn:aws:ec2:us-east-1:1:volume/vol-1"
    EBSBackend.modify_volume(backend, "vol-1", target_size=20)
    (modification,) = volume.modifications
    assert (volume.size, modification.modification_state) == (10, "modifying")
    with pytest.raises(EC2ClientError, match="modification state MODIFYING"):
        EBSBackend.modify_volume(backend, "vol-1", target_size=30)
    agenda.run_due(time.time() + volumes.MODIFYING_SECONDS)
    assert (volume.size, modification.modification_state) == (20, "optimizing")
    assert said == [("optimizing", arn)]
    agenda.run_due(time.time() + volumes.MODIFYING_SECONDS + volumes.OPTIMIZING_SECONDS)
    assert modification.modification_state == "completed"
    assert said == [("optimizing", arn), ("completed", arn)]
