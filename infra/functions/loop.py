"""The functions of the loop and how they are woken.

    events queue -> interruption -> ticks queue -> tick -> ticks queue ...
    every minute -> sweep        -> ticks queue
    a person     -> rotate       -> ticks queue

Tick, sweep and rotate speak to the API server, tick and rotate to the brokers too, so they stand in
the VPC and have access entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from core import naming
from core.constants import TICKS_MAX_RECEIVE_COUNT
from infra.functions.catalogue import LOOP
from infra.functions.definition import Definition
from infra.functions.function import FunctionArgs, LambdaFunction, Shared, feed
from infra.functions.kept import keep
from infra.functions.queues import MessageQueue, QueueArgs
from infra.functions.schedule import wake
from infra.functions.settings import settings
from infra.functions.tick import TICK

TYPE = "stillwater:infra:Functions"


class LoopFunctions(pulumi.ComponentResource):
    """interruption, tick, sweep and rotate, by name."""

    functions: Mapping[str, LambdaFunction]
    ticks_queue: MessageQueue

    def __init__(
        self,
        name: str,
        shared: Shared,
        events_queue_arn: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
        *,
        definitions: Sequence[Definition] = LOOP,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._shared, cluster = name, shared, shared.scope.cluster
        self.ticks_queue = self._ticks_queue()
        late = {**shared.late, "ticks_queue_url": self.ticks_queue.url}
        told = {each.name: settings(each, cluster, late) for each in definitions}
        # What they keep is the same for all: the API server, pools' labels, Kafka's addresses.
        self._kept = keep(f"{name}-kept", "loop", late["ledger_table"], told[TICK.name], self)
        self.functions = {each: self._function(each, told[each]) for each in told}
        sources = {"events": events_queue_arn, "ticks": self.ticks_queue.arn}
        for each in definitions:
            function = self.functions[each.name]
            if each.reads is not None:
                feed(f"{name}-{each.name}", each, sources[each.reads.queue], function, self)
            wake(f"{name}-{each.name}", each, cluster.prefix, function, self)
        self.register_outputs({"ticks_queue_url": self.ticks_queue.url})

    def _ticks_queue(self) -> MessageQueue:
        cluster = self._shared.scope.cluster
        return MessageQueue(
            f"{self._name}-ticks",
            QueueArgs(
                queue_name=naming.queue(cluster.prefix, "ticks"),
                visibility_timeout_seconds=cluster.timings.queue_visibility_timeout_seconds,
                retention_seconds=cluster.timings.events_queue_retention_seconds,
                max_receive_count=TICKS_MAX_RECEIVE_COUNT,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _function(self, role: str, told: pulumi.Output[Any]) -> LambdaFunction:
        definition = next(each for each in LOOP if each.name == role)
        inside = definition.kubernetes is not None
        return LambdaFunction(
            f"{self._name}-{role}",
            FunctionArgs(
                definition=definition,
                scope=self._shared.scope,
                package=self._shared.package,
                settings=told,
                kept=self._kept if inside else None,
                placement=self._shared.placement if inside else None,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
