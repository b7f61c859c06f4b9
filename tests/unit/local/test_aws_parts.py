"""The pure parts of the twin's AWS: agenda, batch answers, rates, user data, modifications."""

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
from tests.every_case import every_case

IDS = ("a", "b", "c")


def test_what_is_due_runs_in_the_order_of_its_time() -> None:
    agenda, done = Agenda(), []
    agenda.add(2.0, lambda: done.append("second"))
    agenda.add(1.0, lambda: done.append("first"))
    agenda.add(9.0, lambda: done.append("later"))
    assert agenda.run_due(2.0) == 2
    assert done == ["first", "second"]


@every_case(
    ("answer", "kept"),
    [
        *((each, "") for each in (b"null", b"", b'{"batchItemFailures": null}')),
        (b'{"batchItemFailures": []}', ""),
        (b'{"batchItemFailures": [{"itemIdentifier": "b"}]}', "b"),
        (b'{"batchItemFailures": [{"itemIdentifier": "x"}]}', "abc"),
        (b'{"batchItemFailures": [{"itemIdentifier": ""}]}', "abc"),
        (b'{"batchItemFailures": [{"id": "b"}]}', "abc"),
        *((each, "abc") for each in (b'{"failures": []}', b'"done"', b"{")),
    ],
)
def test_messages_stay_when_the_function_says_so_or_cannot_be_understood(
    answer: bytes, kept: str
) -> None:
    assert failed_ids(IDS, answer, error=False, partial=True) == frozenset(kept)
    # Who did not ask for single failures has none, and of a function that failed all are.
    assert failed_ids(IDS, answer, error=False, partial=False) == frozenset()
    assert failed_ids(IDS, b"{}", error=True, partial=bool(kept)) == frozenset(IDS)


def test_a_target_gets_its_constant_input_or_all() -> None:
    event = {
        "id": "1",
        "detail-type": "Test",
        "source": "test",
        "account": "123456789012",
        "time": 1795212261.5,
        "region": "us-east-1",
        "resources": [],
        "detail": {"n": 1},
    }
    assert events.payload({"Input": '{"k": 1}'}, event) == {"k": 1}
    assert events.payload({}, event)["detail"] == {"n": 1}


def test_a_rate_is_so_many_seconds() -> None:
    rates = ("rate(1 minute)", "rate(5 minutes)", "rate(1 hour)", "cron(0 12 * * ? *)")
    assert [events.interval_seconds(each) for each in rates] == [60, 300, 3600, None]


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
