"""Layer 3: the nodes of Kafka, its operator, Kafka, then what needs Kafka."""

from __future__ import annotations

import pulumi

from core.ground.naming import FOUNDATION
from infra.alerts.dashboards import Dashboards
from infra.charts.strimzi import StrimziOperator
from infra.kafka.cluster import DisruptionBudgets, Kafka, KafkaNamespace, bootstrap_servers
from infra.kafka.connect import ConnectCluster
from infra.kafka.probe import ProbeDeployment
from infra.kafka.topics import Topics
from infra.loadbalancing import GATED, LoadBalancing, LoadBalancingArgs
from stacks.layer import Layer
from stacks.layers import kafka_nodes


def build(layer: Layer) -> None:
    spec, foundation = layer.spec, layer.earlier(FOUNDATION)
    nodes, groups = kafka_nodes.build(layer)
    # After the nodes: on the way down every pod in it ends, orderly, while its node is there.
    called = spec.kubernetes.namespace
    namespace = KafkaNamespace("kafka", called, GATED, opts=_options_after(layer, nodes))
    before: list[pulumi.Resource] = [nodes, namespace]
    if spec.strimzi.operator == "chart":
        before.append(StrimziOperator("strimzi", spec, opts=_options_after(layer, namespace)))
    kafka = Kafka("kafka", spec, opts=_options_after(layer, *before))
    balancing = LoadBalancing(
        "balancing",
        LoadBalancingArgs(
            spec=spec,
            # On the way down, taking the bindings away is the time brokers have to stop in while
            # their controllers still answer.
            bindings_after=[namespace, *kafka.controllers],
            vpc_id=foundation.text("vpc_id"),
            cluster_security_group_id=foundation.text("cluster_security_group_id"),
            private_subnet_ids=layer.private_subnet_ids(),
        ),
        opts=layer.both_opts,
    )
    first: list[pulumi.Resource] = [balancing]
    if spec.strimzi.own_budgets:
        # Before the first pod: there is no time in which anybody may evict them all.
        first.append(DisruptionBudgets("budgets", spec, opts=_options_after(layer, namespace)))
    # Bindings that come after a broker's pod give it no readiness gate, for all its life.
    kafka.run(after=first)
    topics = Topics("topics", spec, opts=_options_after(layer, kafka))
    if spec.probe is not None:
        ProbeDeployment("probe", spec, spec.probe, opts=_options_after(layer, kafka, topics))
    if spec.connect is not None:
        ConnectCluster("connect", spec, spec.connect, opts=_options_after(layer, kafka))
    if spec.metrics.dashboards:
        after = _options_after(layer, namespace)
        Dashboards("dashboards", spec, opts=after, own_prices=layer.own_prices)
    pulumi.export("auto_scaling_groups", dict(groups))
    pulumi.export("namespace", namespace.name)
    pulumi.export("load_balancer", balancing.dns_name)
    pulumi.export("load_balancer_security_group_id", balancing.security_group_id)
    pulumi.export("target_groups", dict(balancing.target_group_arns))
    pulumi.export("bootstrap", ",".join(bootstrap_servers(spec)))
    # What a later run is held against (cli.provision).
    pulumi.export("spec", spec.model_dump_json())


def _options_after(layer: Layer, *before: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(
        layer.both_opts, pulumi.ResourceOptions(depends_on=list(before))
    )
