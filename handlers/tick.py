"""λ tick: a message of the ticks queue -> one turn of an incident, a rotation run or the zones."""

from __future__ import annotations

import functools
import time
from typing import Any

from core.availability.wholeness import MOVING_LEADERS
from core.incidents.actions import ACTING
from core.incidents.observation import Ownership
from core.settings.functions import TickSettings, late_seconds
from handlers.adapters import metrics
from handlers.adapters.aws import AwsCloud, Ec2Inventory, Queue
from handlers.adapters.batch import answer
from handlers.adapters.eks import open_api
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_identity import KafkaAccess
from handlers.adapters.kubernetes import NO_ENDS, EksClaimEnds, EksDrain, open_claims, open_nodes
from handlers.adapters.pages import Topic
from handlers.adapters.pods import AT_ONCE, PodExporters
from handlers.adapters.templates import RootVolumes
from handlers.incidents.act import Effects, ErrorSnapshots
from handlers.incidents.loop import Loop
from handlers.incidents.observe import Sources
from handlers.incidents.reception import Reception
from handlers.incidents.shifts import Leadership, Shifts
from handlers.rotation.turns import ClientsBudget, Rotations, Throttles
from handlers.store.documents import Freezes, Runs
from handlers.store.ledger import open_ledger, open_stories
from handlers.store.table import Records, read_settings


@functools.cache
def _loop() -> Loop:
    settings = read_settings(TickSettings)
    late = late_seconds(settings.policy.tick_interval_seconds)
    ledger, stories = open_ledger(settings), open_stories(settings)
    cloud = AwsCloud(settings.region)
    api = open_api(settings, AT_ONCE)
    nodes = open_nodes(settings, api)
    access = KafkaAccess(settings.kafka, api)
    acts = settings.level in ACTING
    named = _ownership(settings)
    needed = MOVING_LEADERS if acts else frozenset()
    kafka = KafkaAdmin(settings.kafka_bootstrap, access, needed=needed)
    records = Records(settings.ledger_table, settings.region)
    freezes = Freezes(records, settings.cluster)
    leadership = Leadership(kafka, records, settings.cluster)
    ticks = Queue(settings.ticks_queue_url, settings.region)
    topic = settings.alerts_topic_arn
    snapshots = ErrorSnapshots(PodExporters(api, settings.namespace), nodes, records)
    cordons = EksDrain(api, settings.namespace, settings.cluster)
    drain = cordons if settings.drains else None
    roots = RootVolumes(settings.region) if acts else None
    sources = Sources(
        cloud=cloud,
        nodes=nodes,
        kafka=kafka,
        ledger=ledger,
        freezes=freezes,
        drain=drain,
        claims=open_claims(settings, api),
        roots=roots,
    )
    return Loop(
        sources=sources,
        effects=Effects(
            cloud=cloud,
            nodes=nodes,
            ledger=ledger,
            freezes=freezes,
            leadership=leadership,
            snapshots=snapshots,
            termination_handler=_handler_of(settings),
            drain=drain,
            ticks=ticks,
            policy=settings.policy,
            lease_seconds=settings.lease_seconds,
            reach=settings.reach,
            claims=EksClaimEnds(api) if settings.ends_claims else NO_ENDS,
            roots=roots,
            cordons=cordons,
        ),
        ticks=ticks,
        policy=settings.policy,
        late_seconds=late,
        shifts=Shifts(
            freezes=freezes,
            ledger=ledger,
            cloud=cloud,
            inventory=Ec2Inventory(settings.region),
            nodes=nodes,
            leadership=leadership,
            records=records,
            ticks=ticks,
            whose=settings.whose if named is None else named,
            cluster=settings.cluster,
            told=stories.tell_zone,
            acts=acts,
        ),
        rotations=Rotations(
            runs=Runs(records, settings.cluster),
            sources=sources,
            reception=Reception(ledger, cloud, ticks, settings.whose, records),
            snapshots=snapshots,
            ticks=ticks,
            policy=settings.policy,
            late_seconds=late,
            told=stories.tell_run,
            throttles=Throttles(kafka, records, settings.cluster),
            leadership=leadership,
            budget=None
            if settings.probe_budget is None
            else ClientsBudget.connect(
                settings.probe_budget, settings.namespace, settings.cluster, api
            ),
        ),
        topic=None if topic is None else Topic(topic, settings.region),
        runbooks_url=settings.runbooks_url,
    )


def _handler_of(settings: TickSettings) -> Queue | None:
    url = settings.nth_queue_url
    return None if url is None else Queue(url, settings.region)


def _ownership(settings: TickSettings) -> Ownership | None:
    """Return the groups of a cluster that exists which may be changed; None: it is ours."""
    known = settings.instances
    return None if known is None else Ownership(scaling_groups=known.scaling_groups)


@metrics.emits_metrics
def handler(event: dict[str, Any], context: Any) -> Any:
    """Answer a batch of the ticks queue; failed messages alone are delivered again."""
    return answer(event, context, lambda record: _loop().turn(record.body, time.time()))
