"""The functions of the loop and how they are woken.

    events queue -> interruption -> ticks queue -> tick -> ticks queue ...
    every minute -> sweep        -> ticks queue
    a person     -> rotate       -> ticks queue

Tick, sweep and rotate speak to the API server, tick and rotate to the brokers too, so they stand in
the VPC and have access entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from core.constants import TICKS_MAX_RECEIVE_COUNT
from infra.functions.catalogue import LOOP
from infra.functions.definition import Definition
from infra.functions.function import LambdaFunction, Shared, feed
from infra.functions.kept import keep
from infra.functions.queues import MessageQueue, work_queue
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
        cluster, functions = shared.scope.cluster, dict[str, LambdaFunction]()
        self.ticks_queue = work_queue(
            # People send there, too: a tick says no more than that an incident is to be looked at.
            f"{name}-ticks",
            cluster,
            "ticks",
            TICKS_MAX_RECEIVE_COUNT,
            None,
            self,
        )
        late = {**shared.late, "ticks_queue_url": self.ticks_queue.url}
        told = {each.name: settings(each, cluster, late) for each in definitions}
        # What they keep is the same for all: the API server, pools' labels, Kafka's addresses.
        kept = keep(f"{name}-kept", "loop", late["ledger_table"], told[TICK.name], self)
        sources = {"events": events_queue_arn, "ticks": self.ticks_queue.arn}
        for each in definitions:
            called = f"{name}-{each.name}"
            function = shared.function(called, each, told[each.name], kept, self)
            functions[each.name] = function
            if each.reads is not None:
                feed(called, each, sources[each.reads.queue], function, self)
            wake(called, each, cluster.prefix, function, self)
        self.functions = functions
        self.register_outputs({"ticks_queue_url": self.ticks_queue.url})
