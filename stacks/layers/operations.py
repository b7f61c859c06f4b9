"""Layer 4: the ledger and the functions that act on what AWS announces."""

from __future__ import annotations

from typing import Any

import pulumi

from core.cluster.operated import of_spec
from core.naming import FOUNDATION, KAFKA, PLATFORM
from infra.alerts.topic import AlertTopic
from infra.functions import packaging
from infra.functions.catalogue import ALONE, LOOP
from infra.functions.definition import Scope
from infra.functions.function import FunctionPlacement, Shared, in_cluster
from infra.functions.ledger import ArchiveBucket, LedgerTable
from infra.functions.loop import (
    NAMES,
    Alone,
    FunctionAccess,
    HandlerNetwork,
    HandlerNetworkArgs,
    LoopFunctions,
    Stories,
)
from infra.gate import EvictionGate, EvictionGateArgs
from infra.loadbalancing import advertised_ports
from infra.nodes.hooks import DepartureHooks
from stacks.layer import Layer


def build(layer: Layer) -> None:
    spec = layer.spec
    foundation, platform = layer.earlier(FOUNDATION), layer.earlier(PLATFORM)
    cluster = of_spec(spec)
    scope = Scope(cluster=cluster, account=layer.account)
    ledger = LedgerTable("ledger", cluster, opts=layer.on_aws)
    network = HandlerNetwork(
        "handlers-network",
        HandlerNetworkArgs(
            prefix=spec.prefix,
            vpc_id=foundation.text("vpc_id"),
            cluster_security_group_id=foundation.text("cluster_security_group_id"),
            load_balancer_security_group_id=layer.earlier(KAFKA).text(
                "load_balancer_security_group_id"
            ),
            advertised_ports=advertised_ports(spec),
        ),
        opts=layer.on_aws,
    )
    archive = ArchiveBucket("archive", scope, opts=layer.on_aws)
    package = packaging.build(own_prices=layer.own_prices)
    late: dict[str, pulumi.Input[Any]] = {
        "ledger_table": ledger.table_name,
        "archive_bucket": archive.bucket,
        "nth_queue_url": platform.text("nth_queue_url"),
        **in_cluster(
            cluster.eks_cluster,
            endpoint=foundation.text("eks_endpoint"),
            authority=foundation.text("eks_ca"),
            bootstrap=layer.earlier(KAFKA).text("bootstrap"),
        ),
    }
    if spec.slack is not None:
        stories = Stories("stories", scope, package, ledger.table_name, opts=layer.on_aws)
        late["stories_queue_url"] = stories.queue.url
    if spec.alerts.enabled:
        alerts = AlertTopic("alerts", scope, opts=layer.on_aws)
        pulumi.export("alerts_topic", alerts.topic_arn)
        late["alerts_topic_arn"] = alerts.topic_arn
    placement = FunctionPlacement(
        subnet_ids=list(layer.private_subnet_ids().values()),
        security_group_ids=[network.security_group_id],
    )
    shared = Shared(scope=scope, package=package, late=late, placement=placement)
    handlers = LoopFunctions(
        "handlers", shared, platform.text("events_queue_arn"), opts=layer.on_aws
    )
    alone = {each.name: Alone(each, shared, opts=layer.on_both) for each in ALONE}
    functions = {**handlers.functions, **{name: each.function for name, each in alone.items()}}
    access = {
        each.name: FunctionAccess(each, cluster, functions[each.name].role, opts=layer.on_both)
        for each in (*LOOP, *ALONE)
        if each.name in NAMES
    }
    if spec.node_provisioner == "asg":
        answering = [handlers, access["tick"], access["sweep"]]
        DepartureHooks("hooks", spec, answering, opts=layer.on_aws)
    if spec.eviction_gate is not None:
        EvictionGate(
            "gate",
            EvictionGateArgs(
                scope=scope,
                late={**late, "ticks_queue_url": handlers.ticks_queue.url},
            ),
            opts=layer.on_both,
        )
    pulumi.export("ledger_table", ledger.table_name)
    pulumi.export("incidents_bucket", archive.bucket)
    pulumi.export("handlers_security_group_id", network.security_group_id)
    pulumi.export("ticks_queue_url", handlers.ticks_queue.url)
    pulumi.export("functions", {key: each.name for key, each in functions.items()})
