"""Volumes on the twin: grown under a running broker, raised and lowered, or refused by name.

The machine's disk is not filled: a MiB written to the broker stands for a GiB and a quarter, above
half of the volume. Time is passed in where hours must pass; EC2's own limits see the real clock.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from kafka import KafkaProducer

from core import pricing
from core.naming import claim as claim_name
from core.volumes.forecast import Sample
from core.volumes.ledger import History
from core.volumes.views import Hour
from handlers import volume_records
from handlers.adapters.claims import FIELD_MANAGER, EksClaims
from handlers.adapters.ebs import Ec2Ebs
from handlers.adapters.eks import EksApi
from handlers.adapters.fill import FillView, KafkaFills
from handlers.adapters.load import CloudWatchLoads
from handlers.records import DynamoRecords
from handlers.volume_settings import VolumeSettings
from handlers.volume_sight import Lookout
from handlers.volumes import Steward
from local import environment
from local.demo import spec as demo_spec
from tests.integration.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
PREFIX = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}"
MIB, GIB, HOUR = 1024**2, 1024**3, 3600.0
POOL, BROKER, TOPIC = "broker-a", 10, "volumes-fill"
CLAIM = claim_name(demo_spec.CLUSTER, POOL, BROKER, 0)
PATIENCE_SECONDS = 180.0
FULL_WITH_MIB = 12


class Scaled:
    """The fill of one broker's volume at another scale; what others hold is left as it is."""

    def __init__(self, real: KafkaFills) -> None:
        self._real = real
        self.empty_bytes = self._logs()

    def _logs(self) -> int:
        return self._real.fills()[BROKER, 0].logs_bytes

    def fills(self) -> Mapping[tuple[int, int], FillView]:
        written = max(0, self._logs() - self.empty_bytes)
        return {(BROKER, 0): FillView(50 * GIB + int(written * 1.25 * GIB / MIB))}


@dataclass
class Stage:
    """The advisor in this process, with the deployed function's settings and rights."""

    cluster: Cluster
    steward: Steward
    volume_id: str

    def claim(self) -> dict[str, Any]:
        path = f"/api/v1/namespaces/kafka/persistentvolumeclaims/{CLAIM}"
        found: dict[str, Any] = self.cluster.twin.api.get(path)
        return found

    def pod(self) -> tuple[str, int]:
        """Return what a restart of the broker would change."""
        pod = self.cluster.pods()[BROKER]
        return pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"]

    def decision(self, now: float, pool: str = POOL, **given: bool) -> dict[str, Any]:
        found = self.steward.turn(now, **given)["decisions"]
        return next(d for d in found if d["pool"] == pool)

    def given(self, gib: int | None = None, klass: str | None = None) -> bool:
        status = self.claim()["status"]
        return (gib is None or status["capacity"]["storage"] == f"{gib}Gi") and (
            klass is None or status.get("currentVolumeAttributesClassName") == klass
        )

    def history(self) -> History:
        records = self.steward.lookout.records
        return volume_records.read(records, self.volume_id).history

    def completed(self) -> bool:
        latest = self.history().latest
        return latest is not None and latest.state.over

    def remember(self, **changed: Any) -> None:
        records = self.steward.lookout.records
        memory = volume_records.read(records, self.volume_id)
        volume_records.write(records, self.volume_id, replace(memory, **changed))


@pytest.fixture
def stage(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A volume with a known history, and the advisor before it."""
    for name, value in environment.with_credentials(cluster.twin.place).items():
        monkeypatch.setenv(name, value)
    function = cluster.twin.aws("lambda").get_function(FunctionName=f"{PREFIX}-volumes")
    variables = function["Configuration"]["Environment"]["Variables"]
    assumed = cluster.twin.aws("sts").assume_role(
        RoleArn=function["Configuration"]["Role"], RoleSessionName="volumes"
    )["Credentials"]
    session = boto3.Session(
        assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"]
    )
    region = environment.REGION
    records = DynamoRecords(variables["STILLWATER_LEDGER_TABLE"], region)
    api = EksApi(
        endpoint=variables["STILLWATER_EKS_ENDPOINT"],
        ca_pem=base64.b64decode(variables["STILLWATER_EKS_CA"]).decode(),
        eks_cluster=variables["STILLWATER_EKS_CLUSTER"],
        region=region,
        session=session,
    )
    steward = Steward(
        lookout=Lookout(
            claims=EksClaims(api, "kafka", demo_spec.CLUSTER),
            ebs=Ec2Ebs(region),
            fills=Scaled(KafkaFills(cluster.bootstrap.split(","), "PLAINTEXT")),
            loads=CloudWatchLoads(region),
            ledger=cluster.ledger,
            records=records,
            settings=VolumeSettings.from_env(variables),
        ),
        book=pricing.book(region),
    )
    volume_id = next(c.volume_id for c in steward.lookout.claims.claims() if c.name == CLAIM)
    made = Stage(cluster, steward, volume_id)
    now = time.time()
    # Looked at for two days: without it, what other tests modified today counts as all there is.
    made.remember(
        history=History(known_since=now - 48 * HOUR, looked_at=now),
        samples=(Sample(now - HOUR, 50.0 * GIB),),
        hours=(),
    )
    return made


@pytest.fixture
def topic(cluster: Cluster) -> Iterator[str]:
    """A topic whose one replica is on the broker, gone with the test."""
    cluster.create_topic(TOPIC, assignments={0: [BROKER]})
    try:
        yield TOPIC
    finally:
        cluster.delete_topic(TOPIC)


def fill(cluster: Cluster, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap.split(","), acks=1)
    for _ in range(FULL_WITH_MIB * 4):
        producer.send(topic, bytes(MIB // 4))
    producer.flush(60)
    producer.close()


def measure(stage: Stage, namespace: str, dimension: tuple[str, str], **values: float) -> None:
    """Have CloudWatch say something of the last twenty minutes."""
    now = time.time()
    stage.cluster.twin.aws("cloudwatch").put_metric_data(
        Namespace=namespace,
        MetricData=[
            {
                "MetricName": name,
                "Dimensions": [{"Name": dimension[0], "Value": dimension[1]}],
                "Timestamp": datetime.fromtimestamp(now - 60 * minute - 30, UTC),
                "Value": value,
            }
            for name, value in values.items()
            for minute in range(1, 21)
        ],
    )


def test_a_filling_volume_grows_under_its_broker_is_raised_and_lowered(
    stage: Stage, topic: str
) -> None:
    before = stage.pod()
    fill(stage.cluster, topic)
    grown = stage.decision(time.time())
    assert (grown["kind"], grown["applied"], grown["emergency"]) == ("grow", True, True)
    gib = grown["target"][0]
    assert gib > 100
    stage.cluster.until(lambda: stage.given(gib), "the claim has grown", PATIENCE_SECONDS)
    # AWS's announcement closes the ledger's entry, once a look has seen it begin.
    stage.decision(time.time())
    stage.cluster.until(stage.completed, "the modification is over", PATIENCE_SECONDS)
    pool = stage.cluster.twin.api.get(
        f"/apis/kafka.strimzi.io/v1/namespaces/kafka/kafkanodepools/{POOL}"
    )
    assert FIELD_MANAGER in {m["manager"] for m in pool["metadata"]["managedFields"]}

    measure(
        stage,
        "AWS/EBS",
        ("VolumeId", stage.volume_id),
        VolumeIOPSExceededCheck=1,
        VolumeReadOps=0,
        VolumeWriteOps=3000 * 60,
        VolumeReadBytes=0,
        VolumeWriteBytes=20 * MIB * 60,
    )
    raised = stage.decision(time.time())
    assert (raised["kind"], raised["target"][1:]) == ("raise", [3600, 125])
    stage.cluster.until(
        lambda: stage.given(klass="gp3-3600-125"), "the volume is faster", PATIENCE_SECONDS
    )
    stage.decision(time.time() + 700)
    stage.cluster.until(stage.completed, "the modification is over", PATIENCE_SECONDS)

    later = time.time() + 30 * HOUR
    first = later - later % HOUR - 26 * HOUR
    stage.remember(
        hours=tuple(Hour(first + n * HOUR, 100.0, 1.0 * MIB, exceeded=False) for n in range(27))
    )
    lowered = stage.decision(later)
    assert (lowered["kind"], lowered["target"][1:]) == ("lower", [3000, 125])
    stage.cluster.until(
        lambda: stage.given(klass="gp3-3000-125"), "the volume is as before", PATIENCE_SECONDS
    )
    kinds = [m.kind for m in stage.history().modifications if m.ours]
    assert kinds == ["grow", "raise", "lower"]
    assert stage.pod() == before


def test_a_volume_whose_instance_is_the_limit_is_refused_with_the_type_that_helps(
    stage: Stage,
) -> None:
    instance = next(
        volume.instance_id
        for id_, volume in stage.steward.lookout.ebs.volumes([stage.volume_id]).items()
    )
    measure(stage, "AWS/EC2", ("InstanceId", str(instance)), InstanceEBSThroughputExceededCheck=1)
    refused = stage.decision(time.time(), dry_run=True)
    assert (refused["kind"], refused["refused_by"]) == ("refuse", "instance")
    assert "r7g.large sustains 3600 IOPS and 75 MiB/s; " in refused["reason"]


def test_the_deployed_function_sees_every_volume_and_has_the_rights_to(cluster: Cluster) -> None:
    answer = cluster.twin.aws("lambda").invoke(
        FunctionName=f"{PREFIX}-volumes", Payload=json.dumps({"dry_run": True}).encode()
    )
    shown = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, shown
    assert shown["mode"] == "apply"
    assert len(shown["volumes"]) >= 6
    assert {d["pool"] for d in shown["decisions"]} >= {"broker-a", "broker-b", "broker-c"}
