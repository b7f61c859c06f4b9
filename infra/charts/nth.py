"""The AWS node termination handler in queue mode: it cordons and drains the nodes it is told of.

It runs on the system nodes (it tolerates no taint of Kafka's), hears its own queue only, and
completes the `drain` hook. Beside a cluster that exists it has a name of its own, since one of
theirs may stand there, and runs off Kafka's machines where there are others. Values that depend on
other timeouts come from the description, where core.timing has compared them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pulumi
import pulumi_kubernetes as k8s

from core.cluster import Timings, limits
from core.ground.constants import NTH_EXIT_MARGIN_SECONDS as EXIT_MARGIN_SECONDS
from core.ground.constants import NTH_NAMESPACE as NAMESPACE
from core.ground.constants import NTH_RELEASE as RELEASE
from infra import iam, pods
from infra.functions import webhook as hook
from infra.versions import NTH_CHART, NTH_CHART_VERSION

TYPE = "stillwater:infra:NodeTerminationHandler"
# The default template's Description ends in a raw newline: a body no JSON parser accepts.
WEBHOOK_TEMPLATE = "{{ toJson . }}"
TOKEN_ANNOTATION = "stillwater.dev/webhook-token"  # noqa: S105 - the annotation's name
# On the direct route nobody waits for the volumes to detach (NTH#651).
DIRECT_DETACH_WAIT_SECONDS = 60
# Valid: 30-3600 s, and below the hook's own timeout.
SHORTEST_HEARTBEAT_SECONDS = 30
HEARTBEAT_LIMITS_SECONDS = (60, 172_800)


@dataclass(frozen=True, kw_only=True)
class NodeTerminationHandlerArgs:
    prefix: str
    region: str
    eks_cluster: str
    queue_url: pulumi.Input[str]
    queue_arn: pulumi.Input[str]
    group_arns: Sequence[pulumi.Input[str]]
    timings: Timings
    drain_route: Literal["held", "direct"]
    # Where the end of a drain is told; None: the tick sees it by itself.
    webhook: hook.Webhook | None
    # The release's name, and its ServiceAccount's.
    release: str = RELEASE
    # None: the machines carry no tag of ours, and its queue hears of no others.
    managed_tag: str | None
    affinity: Mapping[str, Any] = field(default_factory=dict)


class NodeTerminationHandler(pulumi.ComponentResource):
    """The chart's release and the least it may do in AWS."""

    release_name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: NodeTerminationHandlerArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        _, first = iam.controller_role(
            name,
            role_name=f"{args.prefix}-nth",
            eks_cluster=args.eks_cluster,
            service_account=args.release,
            statements=_statements(args),
            parent=self,
        )
        release = k8s.helm.v3.Release(
            f"{name}-release",
            name=args.release,
            namespace=NAMESPACE,
            chart=NTH_CHART,
            version=NTH_CHART_VERSION,
            values=values(args),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[
                    *first,
                    *([] if args.webhook is None else [args.webhook.secret]),
                ],
            ),
        )
        self.release_name = release.name.apply(str)
        self.register_outputs({"release_name": self.release_name})


def values(args: NodeTerminationHandlerArgs) -> dict[str, Any]:
    """Return the chart's values."""
    timings = args.timings
    chosen: dict[str, Any] = {
        "enableSqsTerminationDraining": True,
        "queueURL": args.queue_url,
        "awsRegion": args.region,
        "checkTagBeforeDraining": args.managed_tag is not None,
        # Else the event of a node that is already gone is received until it is a dead letter.
        "deleteSqsMsgIfNodeNotFound": True,
        "serviceAccount": {"name": args.release},
        "podSecurityContext": pods.FILTERED_CALLS,
        "securityContext": pods.NO_CAPABILITIES,
        "resources": pods.resources(limits.TERMINATION_HANDLER, memory_limit_mib=256),
        # Negative: the pod's own grace. A broker knows best how long it needs.
        "podTerminationGracePeriod": -1,
        "nodeTerminationGracePeriod": timings.nth_drain_timeout_seconds,
        "terminationGracePeriodSeconds": timings.nth_drain_timeout_seconds + EXIT_MARGIN_SECONDS,
        "sqsMsgVisibilityTimeoutSec": timings.nth_visibility_timeout_seconds,
        **({} if args.webhook is None else _telling(args.webhook)),
        **({} if args.managed_tag is None else {"managedTag": args.managed_tag}),
        **({} if args.release == RELEASE else {"fullnameOverride": args.release}),
        **({"affinity": dict(args.affinity)} if args.affinity else {}),
        "emitKubernetesEvents": True,
        "jsonLogging": True,
        "logFormatVersion": 2,
        "enablePrometheusServer": True,
        # It would taint a node that still runs: two writers on one file system.
        "enableOutOfServiceTaint": False,
    }
    if args.drain_route == "direct":
        shortest, longest = HEARTBEAT_LIMITS_SECONDS
        chosen |= {
            # On the held route our tick beats both hooks.
            "heartbeatInterval": max(
                SHORTEST_HEARTBEAT_SECONDS, timings.hook_heartbeat_timeout_seconds // 3
            ),
            "heartbeatUntil": min(longest, max(shortest, timings.hold_limit_seconds)),
            "completeLifecycleActionDelaySeconds": DIRECT_DETACH_WAIT_SECONDS,
        }
    return chosen


def _telling(webhook: hook.Webhook) -> dict[str, Any]:
    return {
        "webhookURL": webhook.url,
        # As `webhookHeaders` the token would stand in the release and in the Deployment.
        "extraEnv": [
            {
                "name": "WEBHOOK_HEADERS",
                "valueFrom": {"secretKeyRef": {"name": hook.SECRET, "key": hook.HEADERS_KEY}},
            }
        ],
        # A pod reads its environment once: another token, another pod.
        "podAnnotations": {TOKEN_ANNOTATION: webhook.token_fingerprint},
        "webhookTemplate": WEBHOOK_TEMPLATE,
    }


def _statements(args: NodeTerminationHandlerArgs) -> list[iam.Statement]:
    hook_actions, look_actions = ["autoscaling:CompleteLifecycleAction"], ["ec2:DescribeInstances"]
    if args.drain_route == "direct":
        # It compares the hook's timeout with its own heartbeats, which it sends there alone.
        hook_actions.append("autoscaling:RecordLifecycleActionHeartbeat")
        look_actions.append("autoscaling:DescribeLifecycleHooks")
    return [
        iam.Statement(
            sid="ReadItsQueue",
            actions=["sqs:ReceiveMessage", "sqs:DeleteMessage"],
            resources=[args.queue_arn],
        ),
        iam.Statement(sid="FinishItsHook", actions=hook_actions, resources=args.group_arns),
        iam.look(*look_actions),
    ]
