"""λ rotate: plan, start, pause, resume or abort a rotation run; whoever may invoke it may rotate.

It answers what was decided and leaves the rest to the loop: λ tick takes the run's turns
(handlers.rotations). The event is `{"command": ..., "actor": ..., ...}`, the answer `{"said": ...}`
with the run or the plan, or `{"problems": [...]}` where a person has to do something else.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger

from core.errors import Conflict, InvalidInput, StillwaterError
from core.rotation.run_record import (
    DEFAULT_DEADLINE_SECONDS,
    Options,
    Run,
    RunState,
    abort,
    open_run,
    pause,
    resume,
    to_document,
)
from core.rotation.selection import Selection, turns_of
from handlers.adapters import metrics
from handlers.adapters.aws import AwsCloud, Queue, SqsQueue
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kubernetes import EksNodes
from handlers.freezes import LedgerFreezes
from handlers.ledger import DynamoLedger
from handlers.messages import rotation_message
from handlers.observe import Sources
from handlers.records import DynamoRecords
from handlers.rotations import observe_cluster
from handlers.runs import LedgerRuns
from handlers.settings import Settings

logger = Logger(service="stillwater")
MOST_ATTEMPTS = 5


@dataclass(frozen=True)
class Conductor:
    """Takes a person's word on rotations."""

    runs: LedgerRuns
    sources: Sources
    ticks: Queue
    managed_tag: str

    def take(self, event: Mapping[str, Any], now: float) -> dict[str, Any]:
        """Carry out one command; what a person must hear of comes back as sentences."""
        try:
            return self._carry_out(str(event.get("command")), event, now)
        except InvalidInput as error:
            return {"problems": list(error.problems)}
        except (Conflict, StillwaterError) as error:
            return {"problems": [str(error)]}

    def _carry_out(self, command: str, event: Mapping[str, Any], now: float) -> dict[str, Any]:
        wishes: Mapping[str, Callable[[Run, str, float], Run]] = {
            "pause": pause,
            "resume": functools.partial(resume, skip=bool(event.get("skip"))),
            "abort": abort,
        }
        if command in wishes:
            return self._wish(event, now, wishes[command])
        if command == "start":
            return self._start(event, now)
        if command == "status":
            return self._told(self._current())
        raise InvalidInput([f"{command!r} is none of start, status, {', '.join(wishes)}."])

    def _start(self, event: Mapping[str, Any], now: float) -> dict[str, Any]:
        seen = observe_cluster(self.sources, self.managed_tag, now)
        if seen.blind:
            raise StillwaterError(seen.blind)
        turns = turns_of(seen, _selection(event), {})
        if not turns:
            return {"said": "Nothing is outdated: there is nothing to rotate."}
        run = open_run(turns, _options(event), _actor(event), now)
        written = self.runs.replace_by(run)
        self._wake(written)
        return self._told(written)

    def _told(self, run: Run) -> dict[str, Any]:
        return {"said": run.reason, "run": to_document(run)}

    def _wish(
        self, event: Mapping[str, Any], now: float, change: Callable[[Run, str, float], Run]
    ) -> dict[str, Any]:
        """Write what a person wants over the newest version, and have the loop look at once."""
        for _ in range(MOST_ATTEMPTS):
            wished = change(self._current(), _actor(event), now)
            try:
                written = self.runs.put(wished)
            except Conflict:
                continue  # A turn was faster.
            if written.state is RunState.RUNNING:
                self._wake(written)
            return self._told(written)
        raise Conflict("The run kept changing; try again in a moment.")

    def _current(self) -> Run:
        run = self.runs.current()
        if run is None:
            raise StillwaterError(
                "No rotation was ever started here; `stillwater rotate start` starts one."
            )
        return run

    def _wake(self, run: Run) -> None:
        self.ticks.send(rotation_message(run.version))


def _actor(event: Mapping[str, Any]) -> str:
    return str(event.get("actor") or "somebody")


def _selection(event: Mapping[str, Any]) -> Selection:
    named: Mapping[str, Any] = event.get("selection") or {}
    return Selection(
        everything=bool(named.get("everything")),
        node_ids=tuple(int(n) for n in named.get("node_ids", ())),
        pools=tuple(named.get("pools", ())),
        zones=tuple(named.get("zones", ())),
    )


def _options(event: Mapping[str, Any]) -> Options:
    return Options(
        deadline_seconds=float(event.get("deadline_seconds") or DEFAULT_DEADLINE_SECONDS)
    )


@functools.cache
def _conductor() -> Conductor:
    settings = Settings.from_env()
    nodes = EksNodes(
        endpoint=settings.eks_endpoint,
        ca_pem=settings.eks_ca_pem,
        eks_cluster=settings.eks_cluster,
        region=settings.region,
        namespace=settings.namespace,
        kafka_cluster=settings.cluster,
    )
    records = DynamoRecords(settings.ledger_table, settings.region)
    return Conductor(
        runs=LedgerRuns(records, settings.cluster),
        sources=Sources(
            cloud=AwsCloud(settings.region),
            nodes=nodes,
            kafka=KafkaAdmin(
                settings.kafka_bootstrap, settings.kafka_security, nodes.kafka_authorities
            ),
            ledger=DynamoLedger(settings.ledger_table, settings.cluster, settings.region),
            freezes=LedgerFreezes(records, settings.cluster),
        ),
        ticks=SqsQueue(settings.ticks_queue_url, settings.region),
        managed_tag=settings.managed_tag,
    )


@metrics.emitted
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one command."""
    del context
    answer = _conductor().take(event, time.time())
    logger.info(answer.get("said") or "Refused.", problems=answer.get("problems"))
    return answer
