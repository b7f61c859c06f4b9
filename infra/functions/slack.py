"""Brings incidents to Slack: a queue of their own, and λ slack, which alone knows the token.

Whoever writes to the ledger sends a message and goes on; Slack being slow, strict or down is felt
here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from core.cluster.operated import Operated
from core.constants import STORIES_MAX_RECEIVE_COUNT
from core.settings.functions import SlackSettings
from infra import iam
from infra.functions.definition import Definition, Reads, Scope, know, on_items, read_queue, send
from infra.functions.function import FunctionArgs, LambdaFunction, feed, settings
from infra.functions.packaging import FunctionPackage
from infra.functions.termination import MessageQueue, work_queue

TYPE = "stillwater:infra:Stories"


def _may(scope: Scope) -> Sequence[iam.Statement]:
    slack = scope.cluster.slack
    return [
        read_queue(scope, "stories"),
        send(scope, "TellItLater", "stories"),
        on_items(
            scope,
            "ReadIncidents",
            ["GetItem"],
            "incident#*",
            "rotation#*",
            "story#*",
            f"freezes#{scope.cluster.name}",
        ),
        on_items(scope, "KeepThreads", ["PutItem"], "story#*"),
        *([] if slack is None else [know(scope.secret(slack.secret_name))]),
    ]


def _own_settings(cluster: Operated) -> Mapping[str, Any]:
    slack = {} if cluster.slack is None else cluster.slack.model_dump()
    return {**slack, "hold_limit_seconds": cluster.timings.hold_limit_seconds}


SLACK = Definition(
    name="slack",
    description="An incident that changed is told in its Slack thread",
    settings=SlackSettings,
    may=_may,
    own_settings=_own_settings,
    # The least AWS accepts at once; Slack takes about one message a second.
    reads=Reads(queue="stories", batch=10, at_once=2),
)


class Stories(pulumi.ComponentResource):
    """The queue, and the function: it reads incidents, keeps threads and knows one secret."""

    queue: MessageQueue
    function: LambdaFunction

    def __init__(
        self,
        name: str,
        scope: Scope,
        package: FunctionPackage,
        table_name: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        child, cluster = pulumi.ResourceOptions(parent=self), scope.cluster
        self.queue = work_queue(
            f"{name}-queue",
            cluster,
            "stories",
            STORIES_MAX_RECEIVE_COUNT,
            [scope.account.our_roles(cluster.prefix)],
            self,
        )
        late = {"ledger_table": table_name, "stories_queue_url": self.queue.url}
        self.function = LambdaFunction(
            f"{name}-slack",
            FunctionArgs(
                definition=SLACK,
                scope=scope,
                package=package,
                settings=settings(SLACK, cluster, late),
            ),
            opts=child,
        )
        feed(f"{name}-slack", SLACK, self.queue.arn, self.function, self)
        self.register_outputs({"queue_url": self.queue.url})
