"""Volumes on the twin: grown under a running broker, raised and lowered, or refused by name.

The machine's disk is neither filled nor kept busy: what is really written to the broker counts at
another scale, as a GiB and a quarter of fill a MiB above half of the volume, or as the load of a
minute, which a meter tells CloudWatch as EBS does. Time is passed in where hours must pass; EC2's
own limits see the real clock.
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
from core.errors import Conflict
from core.naming import claim as claim_name
from core.volumes.forecast import Sample
from core.volumes.ledger import History, free_slots
from core.volumes.views import Hour
from handlers import volume_records
from handlers.adapters.claims import FIELD_MANAGER, EksClaims
from handlers.adapters.ebs import Ec2Ebs
from handlers.adapters.eks import EksApi
from handlers.adapters.fill import FillView, KafkaFills
from handlers.adapters.load import CloudWatchLoads
from handlers.records import DynamoRecords
from handlers.runs import LedgerRuns
from handlers.volume_departures import Departing
from handlers.volume_settings import VolumeSettings
from handlers.volume_sight import Lookout
from handlers.volume_sources import Sources
from handlers.volumes import Steward
from local import environment
from local.demo import spec as demo_spec
from tests.integration.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
PREFIX = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}"
MIB, GIB, HOUR, MINUTE = 1024**2, 1024**3, 3600.0, 60
POOL, BROKER, TOPIC = "broker-a", 10, "volumes-fill"
OTHER_POOL, OTHER_BROKER = "broker-b", 20
CLAIM = claim_name(demo_spec.CLUSTER, POOL, BROKER, 0)
PATIENCE_SECONDS = 180.0
FULL_WITH_MIB = 12
# A MiB really written in a metered minute is so much asked of the volume all through it.
ASKED_PER_MIB = 100 * MIB


class Scaled:
    """The fill of one broker's volume at another scale; what others hold is left as it is."""

    def __init__(self, real: KafkaFills) -> None:
        self._real = real
        self.fills_up = True
        self.empty_bytes = self.logs_bytes()

    def logs_bytes(self) -> int:
        return self._real.fills()[BROKER, 0].logs_bytes

    def fills(self) -> Mapping[tuple[int, int], FillView]:
        written = max(0, self.logs_bytes() - self.empty_bytes) if self.fills_up else 0
        return {(BROKER, 0): FillView(50 * GIB + int(written * 1.25 * GIB / MIB))}


@dataclass
class Stage:
    """The advisor in this process, with the deployed function's settings and rights."""

    cluster: Cluster
    steward: Steward
    volume_id: str
    fill: Scaled

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
        def written() -> bool:
            memory = volume_records.read(records, self.volume_id)
            try:
                volume_records.write(records, self.volume_id, replace(memory, **changed))
            except Conflict:  # the deployed function was still at it
                return False
            return True

        records = self.steward.lookout.records
        self.cluster.until(written, "the volume's record is written", PATIENCE_SECONDS)


@pytest.fixture
def alone(cluster: Cluster) -> Iterator[None]:
    """The deployed function's schedule stands still: it would act on what a test measures."""
    events, rule = cluster.twin.aws("events"), f"{PREFIX}-volumes-schedule"
    events.disable_rule(Name=rule)
    yield
    events.enable_rule(Name=rule)


@pytest.fixture
def stage(cluster: Cluster, alone: None, monkeypatch: pytest.MonkeyPatch) -> Stage:
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
    fill = Scaled(KafkaFills(cluster.bootstrap.split(","), "PLAINTEXT"))
    steward = Steward(
        lookout=Lookout(
            claims=EksClaims(api, "kafka", demo_spec.CLUSTER),
            sources=Sources(ebs=Ec2Ebs(region), fills=fill, loads=CloudWatchLoads(region)),
            departing=Departing(
                ledger=cluster.ledger,
                runs=LedgerRuns(records, demo_spec.CLUSTER),
                records=records,
            ),
            records=records,
            settings=VolumeSettings.from_env(variables),
        ),
        book=pricing.book(region),
    )
    volume_id = next(c.volume_id for c in steward.lookout.claims.claims() if c.name == CLAIM)
    made = Stage(cluster, steward, volume_id, fill)
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


def fill(cluster: Cluster, topic: str, mib: int = FULL_WITH_MIB) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap.split(","), acks=1)
    for _ in range(mib * 4):
        producer.send(topic, bytes(MIB // 4))
    producer.flush(60)
    producer.close()


def metered(stage: Stage, topic: str, minutes: int = 10, mib: int = 2) -> None:
    """Keep a broker busy, and have CloudWatch say of it what EBS would have measured."""
    limit = stage.steward.lookout.sources.ebs.volumes([stage.volume_id])[stage.volume_id]
    most = limit.shape.throughput_mib_per_s * MIB
    now = time.time()
    for minute in range(1, minutes + 1):
        before = stage.fill.logs_bytes()
        fill(stage.cluster, topic, mib)
        asked = (stage.fill.logs_bytes() - before) / MIB * ASKED_PER_MIB
        had = min(asked, most)
        values = {
            "VolumeThroughputExceededCheck": float(asked > most),
            "VolumeIOPSExceededCheck": 0.0,
            "VolumeReadOps": 0.0,
            # Kafka writes in pieces of a MiB, of which EBS makes four.
            "VolumeWriteOps": had * MINUTE / MIB * 4,
            "VolumeReadBytes": 0.0,
            "VolumeWriteBytes": had * MINUTE,
        }
        at = now - MINUTE * minute - 30
        put(stage.cluster, "AWS/EBS", ("VolumeId", stage.volume_id), at, values)


def put(
    cluster: Cluster, namespace: str, of: tuple[str, str], at: float, values: Mapping[str, float]
) -> None:
    cluster.twin.aws("cloudwatch").put_metric_data(
        Namespace=namespace,
        MetricData=[
            {
                "MetricName": name,
                "Dimensions": [{"Name": of[0], "Value": of[1]}],
                "Timestamp": datetime.fromtimestamp(at, UTC),
                "Value": value,
            }
            for name, value in values.items()
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

    # What filled it has expired; now it is kept busy beyond what it gives.
    stage.fill.fills_up = False
    metered(stage, topic)
    raised = stage.decision(time.time())
    assert (raised["kind"], raised["target"]) == ("raise", [gib, 3000, 250])
    stage.cluster.until(
        lambda: stage.given(klass="gp3-3000-250"), "the volume is faster", PATIENCE_SECONDS
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
    # Of the day's four the last is left for an emergency.
    assert free_slots(stage.history(), time.time()) == 1
    assert stage.pod() == before


def test_a_volume_whose_instance_is_the_limit_is_refused_with_the_type_that_helps(
    stage: Stage,
) -> None:
    # Another broker's: what is said here of an instance stands for an hour.
    bound = claim_name(demo_spec.CLUSTER, OTHER_POOL, OTHER_BROKER, 0)
    sources, claims = stage.steward.lookout.sources, stage.steward.lookout.claims.claims()
    volume_id = next(c.volume_id for c in claims if c.name == bound)
    instance = sources.ebs.volumes([volume_id])[volume_id].instance_id
    for minute in range(1, 21):
        at = time.time() - MINUTE * minute - 30
        exceeded = {"InstanceEBSThroughputExceededCheck": 1.0}
        put(stage.cluster, "AWS/EC2", ("InstanceId", str(instance)), at, exceeded)
    refused = stage.decision(time.time(), pool=OTHER_POOL, dry_run=True)
    assert (refused["kind"], refused["refused_by"]) == ("refuse", "instance")
    assert "r7g.2xlarge sustains 12000 IOPS and 298 MiB/s (40000 and 1192" in refused["reason"]
    assert "; m7g.4xlarge sustains 20000 and 596" in refused["reason"]


def test_the_deployed_function_sees_every_volume_and_has_the_rights_to(cluster: Cluster) -> None:
    answer = cluster.twin.aws("lambda").invoke(
        FunctionName=f"{PREFIX}-volumes", Payload=json.dumps({"dry_run": True}).encode()
    )
    shown = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, shown
    assert shown["mode"] == "apply"
    assert len(shown["volumes"]) >= 6
    assert {d["pool"] for d in shown["decisions"]} >= {"broker-a", "broker-b", "broker-c"}
