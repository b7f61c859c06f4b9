"""Layer 4: the ledger and the functions that act on what AWS announces."""

from __future__ import annotations

import pulumi

from core.cluster.operated import operated_cluster
from core.ground.naming import FOUNDATION, KAFKA, PLATFORM
from infra.adopt import IncidentFunctions
from infra.functions import packaging
from infra.functions.definition import Scope
from infra.functions.function import FunctionPlacement, Shared, server_addresses
from infra.functions.loop import HandlerNetwork, HandlerNetworkArgs
from infra.loadbalancing import advertised_ports
from infra.nodes.groups import DepartureHooks
from stacks.layer import Layer


def build(layer: Layer) -> None:
    spec = layer.spec
    foundation, platform = layer.earlier(FOUNDATION), layer.earlier(PLATFORM)
    cluster = operated_cluster(spec)
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
        opts=layer.aws_opts,
    )
    made = IncidentFunctions(
        "",
        Shared(
            scope=Scope(cluster=cluster, account=layer.account),
            package=packaging.build(own_prices=layer.own_prices),
            late={
                "nth_queue_url": platform.text("nth_queue_url"),
                **server_addresses(
                    cluster.eks_cluster,
                    endpoint=foundation.text("eks_endpoint"),
                    authority=foundation.text("eks_ca"),
                    bootstrap=layer.earlier(KAFKA).text("bootstrap"),
                ),
            },
            placement=FunctionPlacement(
                subnet_ids=list(layer.private_subnet_ids().values()),
                security_group_ids=[network.security_group_id],
            ),
        ),
        platform.text("events_queue_arn"),
        aws_opts=layer.aws_opts,
        both_opts=layer.both_opts,
    )
    if spec.node_provisioner == "asg":
        answering = [made.handlers, made.access["tick"], made.access["sweep"]]
        DepartureHooks("hooks", spec, answering, opts=layer.aws_opts)
    if made.alerts_topic is not None:
        pulumi.export("alerts_topic", made.alerts_topic)
    pulumi.export("ledger_table", made.ledger.table_name)
    pulumi.export("incidents_bucket", made.archive.bucket)
    pulumi.export("handlers_security_group_id", network.security_group_id)
    pulumi.export("ticks_queue_url", made.handlers.ticks_queue.url)
    pulumi.export("functions", {key: each.name for key, each in made.functions.items()})
