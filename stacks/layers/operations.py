"""Layer 4: the ledger and the functions that act on what AWS announces."""

from __future__ import annotations

import pulumi

from core import naming
from core.cluster import ClusterSpec
from core.naming import FOUNDATION, KAFKA, PLATFORM
from infra.alerts.topic import Alerts, AlertsArgs
from infra.functions import packaging
from infra.functions.access import HandlerAccess, HandlerAccessArgs
from infra.functions.archive import Archive, ArchiveArgs
from infra.functions.function import Placement
from infra.functions.health import Health, HealthArgs
from infra.functions.ledger import Ledger, LedgerArgs
from infra.functions.loop import Functions, FunctionsArgs
from infra.functions.network import HandlerNetwork, HandlerNetworkArgs
from infra.functions.rotate_access import RotateAccess, RotateAccessArgs
from infra.functions.slack import Stories, StoriesArgs
from infra.functions.sweep_access import SweepAccess, SweepAccessArgs
from infra.functions.volumes import Volumes, VolumesArgs
from infra.functions.volumes_access import VolumesAccess, VolumesAccessArgs
from infra.kafka.cluster import kafka_pods
from infra.kafka.identity import kafka_secrets
from infra.nodes.hooks import DepartureHooks, DepartureHooksArgs
from stacks.layer import Layer


def build(layer: Layer) -> None:
    spec = layer.spec
    foundation, platform = layer.earlier(FOUNDATION), layer.earlier(PLATFORM)
    ledger = Ledger(
        "ledger", LedgerArgs(prefix=spec.prefix, ephemeral=spec.ephemeral), opts=layer.on_aws
    )
    network = HandlerNetwork(
        "handlers-network",
        HandlerNetworkArgs(
            prefix=spec.prefix,
            vpc_id=foundation.text("vpc_id"),
            cluster_security_group_id=foundation.text("cluster_security_group_id"),
            load_balancer_security_group_id=layer.earlier(KAFKA).text(
                "load_balancer_security_group_id"
            ),
            advertised_ports=_advertised_ports(spec),
        ),
        opts=layer.on_aws,
    )
    archive = Archive(
        "archive",
        ArchiveArgs(
            prefix=spec.prefix, account_id=layer.account.account_id, ephemeral=spec.ephemeral
        ),
        opts=layer.on_aws,
    )
    package = packaging.build()
    stories = None
    if spec.slack is not None:
        stories = Stories(
            "stories",
            StoriesArgs(
                spec=spec, slack=spec.slack, account=layer.account, package=package, ledger=ledger
            ),
            opts=layer.on_aws,
        )
    placement = Placement(
        subnet_ids=list(layer.private_subnet_ids().values()),
        security_group_id=network.security_group_id,
    )
    alerts = None
    if spec.alerts.enabled:
        alerts = Alerts(
            "alerts",
            AlertsArgs(spec=spec, account=layer.account),
            opts=layer.on_aws,
        )
        pulumi.export("alerts_topic", alerts.topic_arn)
    handlers = Functions(
        "handlers",
        FunctionsArgs(
            spec=spec,
            account=layer.account,
            package=package,
            ledger=ledger,
            archive=archive,
            stories_queue=None if stories is None else stories.queue,
            alerts_topic_arn=None if alerts is None else alerts.topic_arn,
            events_queue_arn=platform.text("events_queue_arn"),
            nth_queue_arn=platform.text("nth_queue_arn"),
            nth_queue_url=platform.text("nth_queue_url"),
            eks_endpoint=foundation.text("eks_endpoint"),
            eks_ca=foundation.text("eks_ca"),
            bootstrap=layer.earlier(KAFKA).text("bootstrap"),
            placement=placement,
        ),
        opts=layer.on_aws,
    )
    volumes = Volumes(
        "volumes",
        VolumesArgs(
            spec=spec,
            account=layer.account,
            package=package,
            ledger=ledger,
            environment=handlers.environment,
            eks_ca=foundation.text("eks_ca"),
            placement=placement,
        ),
        opts=layer.on_aws,
    )
    VolumesAccess(
        "volumes-access",
        VolumesAccessArgs(
            eks_cluster=spec.prefix,
            namespace=spec.kubernetes.namespace,
            role_arn=volumes.function.role_arn,
            may_apply=spec.volumes.applies,
            kafka_secrets=kafka_secrets(spec, "volumes"),
            prometheus=spec.metrics.prometheus.asked if spec.metrics.prometheus else None,
        ),
        opts=layer.on_both,
    )
    health = Health(
        "health",
        HealthArgs(
            spec=spec,
            account=layer.account,
            package=package,
            ledger=ledger,
            eks_endpoint=foundation.text("eks_endpoint"),
            eks_ca=foundation.text("eks_ca"),
            bootstrap=layer.earlier(KAFKA).text("bootstrap"),
            placement=placement,
            kafka_secrets=kafka_secrets(spec, "health"),
        ),
        opts=layer.on_both,
    )
    access = HandlerAccess(
        "handlers-access",
        HandlerAccessArgs(
            eks_cluster=spec.prefix,
            namespace=spec.kubernetes.namespace,
            kafka_secrets=kafka_secrets(spec, "tick"),
            metrics_pods=kafka_pods(spec) if spec.metrics.enabled else (),
            role_arns={"tick": handlers.functions["tick"].role_arn},
        ),
        opts=layer.on_both,
    )
    sweep_access = SweepAccess(
        "sweep-access",
        SweepAccessArgs(eks_cluster=spec.prefix, role_arn=handlers.functions["sweep"].role_arn),
        opts=layer.on_both,
    )
    RotateAccess(
        "rotate-access",
        RotateAccessArgs(
            eks_cluster=spec.prefix,
            namespace=spec.kubernetes.namespace,
            kafka_secrets=kafka_secrets(spec, "rotate"),
            metrics_pods=kafka_pods(spec) if spec.metrics.enabled else (),
            role_arn=handlers.functions["rotate"].role_arn,
        ),
        opts=layer.on_both,
    )
    if spec.node_provisioner == "asg":
        DepartureHooks(
            "hooks",
            DepartureHooksArgs(spec=spec, answering=[handlers, access, sweep_access]),
            opts=layer.on_aws,
        )
    pulumi.export("ledger_table", ledger.table_name)
    pulumi.export("incidents_bucket", archive.bucket)
    pulumi.export("ticks_queue_url", handlers.ticks_queue.url)
    functions = {**handlers.functions, "health": health.function, "volumes": volumes.function}
    pulumi.export("functions", {key: each.name for key, each in functions.items()})


def _advertised_ports(spec: ClusterSpec) -> tuple[int, int]:
    """Return the first and last port a broker may ever be advertised at."""
    ids = [
        node_id
        for pool in spec.pools
        if pool.role.is_broker
        for reserved in spec.node_ids_of(pool).values()
        for node_id in reserved
    ]
    first = spec.kafka.listener.first_advertised_port
    return naming.advertised_port(first, min(ids)), naming.advertised_port(first, max(ids))
