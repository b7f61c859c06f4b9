"""λ volumes in a test's own process, before one pool of the shared cluster.

The machine's disk is neither filled nor kept busy: what is really written to the broker counts at
another scale, as a GiB and a quarter of fill a MiB above half of the volume, or as the load of a
minute, which a meter tells CloudWatch as EBS does. Time is passed in where hours must pass; EC2's
own limits see the real clock.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import boto3
from kafka import KafkaProducer

from core.cost import pricing
from core.ground import naming
from core.ground.errors import Conflict
from core.rotation.run_record import NodeTurn, Options, Run, open_run
from core.settings.volumes import VolumesSettings
from core.volumes.views import FillSample, History
from handlers.adapters.claims import EksClaims
from handlers.adapters.eks import EksApi
from handlers.adapters.volumes import CloudWatchLoads, Ec2Ebs, FillView, KafkaFills
from handlers.store import volume_records
from handlers.store.documents import Runs
from handlers.store.table import Records, read_settings
from handlers.volume.steward import Departing, Lookout, Sources, Steward
from local import environment
from local.demo import spec as demo_spec
from tests.integration.cluster import Cluster

PREFIX = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}"
FUNCTION, RULE = f"{PREFIX}-volumes", f"{PREFIX}-volumes-schedule"
MIB, GIB, HOUR, MINUTE = 1024**2, 1024**3, 3600.0, 60
PATIENCE_SECONDS = 180.0
LOOK_SECONDS = 20.0
# A MiB really written in a metered minute is so much asked of the volume all through it.
ASKED_PER_MIB = 100 * MIB
# A run under this name is in the ledger as any other, and no function carries it out.
REHEARSAL = f"{demo_spec.CLUSTER}-rehearsal"


class Scaled:
    """The fill of one broker's volume at another scale; what others hold is left out."""

    def __init__(self, real: KafkaFills, broker: int) -> None:
        self._real, self._broker = real, broker
        self.fills_up = True
        self.empty_bytes = self.logs_bytes()

    def logs_bytes(self) -> int:
        return self._real.fills()[self._broker, 0].logs_bytes

    def fills(self) -> Mapping[tuple[int, int], FillView]:
        written = max(0, self.logs_bytes() - self.empty_bytes) if self.fills_up else 0
        return {(self._broker, 0): FillView(50 * GIB + int(written * 1.25 * GIB / MIB))}


@dataclass
class Stage:
    """The advisor with the deployed function's settings and rights, and the volume before it."""

    cluster: Cluster
    steward: Steward
    pool: str
    broker: int
    volume_id: str
    fill: Scaled
    runs: Runs

    @property
    def topic(self) -> str:
        return f"volumes-{self.broker}"

    def claim(self) -> dict[str, Any]:
        name = naming.claim(demo_spec.CLUSTER, self.pool, self.broker, 0)
        path = f"/api/v1/namespaces/kafka/persistentvolumeclaims/{name}"
        found: dict[str, Any] = self.cluster.twin.api.get(path)
        return found

    def pod(self) -> tuple[str, int]:
        """Return what a restart of the broker would change."""
        pod = self.cluster.pods()[self.broker]
        return pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"]

    def decision(self, now: float, **given: bool) -> dict[str, Any]:
        found: list[dict[str, Any]] = self.steward.turn(now, **given)["decisions"]
        return found[0]

    def given(self, gib: int | None = None, klass: str | None = None) -> bool:
        status = self.claim()["status"]
        return (gib is None or status["capacity"]["storage"] == f"{gib}Gi") and (
            klass is None or status.get("currentVolumeAttributesClassName") == klass
        )

    def until_given(self, gib: int | None = None, klass: str | None = None) -> None:
        """Wait until the claim has what was asked, and until EC2 has ended the modification."""
        what = f"the claim has {gib or ''} {klass or ''}"
        self.cluster.until(lambda: self.given(gib, klass), what, PATIENCE_SECONDS)

    def until_completed(self, looked_at: float) -> dict[str, Any]:
        """Look, so that the modification is seen to run, then wait for AWS to announce its end."""
        seen, looked = self.decision(looked_at), time.monotonic()

        def over() -> bool:
            nonlocal looked
            if time.monotonic() > looked + LOOK_SECONDS:
                # Announced between EC2's word and its being written down: the next look tells.
                self.decision(looked_at)
                looked = time.monotonic()
            latest = self.history().latest
            return latest is not None and latest.state.over

        self.cluster.until(over, "the modification is over", PATIENCE_SECONDS)
        return seen

    def history(self) -> History:
        records = self.steward.lookout.records
        return volume_records.read(records, self.volume_id).history

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

    def rehearse(self) -> Run:
        """Put a run into the ledger whose next node is the broker, and which nobody carries out."""
        turn = NodeTurn(
            node_id=self.broker,
            pod=naming.pod(demo_spec.CLUSTER, self.pool, self.broker),
            role="broker",
            pool=self.pool,
            zone=demo_spec.ZONES[-1],
            instance_id="i-of-nobody",
            why="it is rehearsed",
        )
        return self.runs.replace_by(open_run([turn], Options(), "ada", time.time()))

    def write(self, mib: int) -> None:
        """Write really so much to the broker."""
        servers = self.cluster.bootstrap.split(",")
        producer = KafkaProducer(bootstrap_servers=servers, acks=1, **self.cluster.access()())
        for _ in range(mib * 4):
            producer.send(self.topic, bytes(MIB // 4))
        producer.flush(60)
        producer.close()

    def meter(self, mib: int, minutes: int = 10) -> None:
        """Keep the broker busy, and have CloudWatch say of it what EBS would have measured."""
        volume = self.steward.lookout.sources.ebs.volumes([self.volume_id])[self.volume_id]
        instance = ("InstanceId", str(volume.instance_id))
        within = {"InstanceEBSIOPSExceededCheck": 0.0, "InstanceEBSThroughputExceededCheck": 0.0}
        most = volume.shape.throughput_mib_per_s * MIB
        now = time.time()
        for minute in range(1, minutes + 1):
            before = self.fill.logs_bytes()
            self.write(mib)
            asked = (self.fill.logs_bytes() - before) / MIB * ASKED_PER_MIB
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
            put(self.cluster, "AWS/EBS", ("VolumeId", self.volume_id), at, values)
            put(self.cluster, "AWS/EC2", instance, at, within)


def put(
    cluster: Cluster, namespace: str, of: tuple[str, str], at: float, values: Mapping[str, float]
) -> None:
    """Have CloudWatch say something of a moment."""
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


@contextmanager
def schedule_stilled(cluster: Cluster) -> Iterator[None]:
    """Keep the deployed function from acting on what a test measures, for the block."""
    events = cluster.twin.aws("events")
    events.disable_rule(Name=RULE)
    try:
        yield
    finally:
        events.enable_rule(Name=RULE)


@contextmanager
def set_up(cluster: Cluster, pool: str, broker: int, **policy: Any) -> Iterator[Stage]:
    """Put the advisor before one pool's volume, whose history it knows; `policy` is changed."""
    with schedule_stilled(cluster):
        made = _stage(cluster, pool, broker, policy)
        now = time.time()
        # Looked at for two days: without it, what other tests modified today counts as all there
        # is.
        made.remember(
            history=History(known_since=now - 48 * HOUR, looked_at=now),
            samples=(FillSample(now - HOUR, 50.0 * GIB),),
            hours=(),
        )
        # Its one replica is on the broker.
        cluster.create_topic(made.topic, assignments={0: [broker]})
        try:
            yield made
        finally:
            cluster.delete_topic(made.topic)


def _stage(cluster: Cluster, pool: str, broker: int, policy: Mapping[str, Any]) -> Stage:
    described = cluster.twin.aws("lambda").get_function(FunctionName=FUNCTION)["Configuration"]
    variables = described["Environment"]["Variables"]
    told = read_settings(VolumesSettings, variables, client=cluster.twin.aws("dynamodb"))
    assumed = cluster.twin.aws("sts").assume_role(
        RoleArn=described["Role"], RoleSessionName="volumes"
    )["Credentials"]
    session = boto3.Session(
        assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"]
    )
    region = environment.REGION
    records = Records(told.ledger_table, region)
    api = EksApi(
        endpoint=told.api.endpoint,
        ca_pem=told.api.ca_pem,
        eks_cluster=told.api.eks_cluster,
        region=region,
        session=session,
    )
    fill = Scaled(KafkaFills(cluster.bootstrap.split(","), cluster.access()), broker)
    runs = Runs(records, REHEARSAL)
    of_pool = told.volumes.pools[pool]
    # What other tests made of the other pools is left alone.
    alone = {pool: replace(of_pool, policy=replace(of_pool.policy, **policy))}
    steward = Steward(
        lookout=Lookout(
            claims=EksClaims(api, "kafka", demo_spec.CLUSTER),
            # A test has CloudWatch say something else a moment later.
            sources=Sources(
                ebs=Ec2Ebs(region), fills=fill, loads=CloudWatchLoads(region, kept_seconds=0)
            ),
            departing=Departing(ledger=cluster.ledger, runs=runs, records=records),
            records=records,
            settings=replace(told.volumes, pools=alone),
        ),
        book=pricing.book(region),
    )
    name = naming.claim(demo_spec.CLUSTER, pool, broker, 0)
    volume_id = next(c.volume_id for c in steward.lookout.claims.claims() if c.name == name)
    return Stage(cluster, steward, pool, broker, volume_id, fill, runs)
