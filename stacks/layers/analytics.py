"""Layer 5: where bills are kept and reports are computed."""

from __future__ import annotations

import pulumi

from core.cluster import operated
from core.ground.naming import FOUNDATION, OPERATIONS
from infra.analytics.workspace import Analytics, AnalyticsArgs
from infra.functions import packaging
from infra.functions.catalogue import SAMPLES
from infra.functions.definition import Scope
from infra.functions.function import FunctionPlacement, Shared, api_server
from infra.functions.loop import Alone
from stacks.layer import Layer


def build(layer: Layer) -> None:
    analytics = Analytics(
        "analytics",
        AnalyticsArgs(
            spec=layer.spec,
            account=layer.account,
            incidents_bucket=layer.earlier(OPERATIONS).text("incidents_bucket"),
            own_prices=layer.own_prices,
        ),
        opts=layer.aws_opts,
    )
    if layer.spec.metrics.prometheus is not None:
        _samples(layer, analytics)
    pulumi.export("billing_bucket", analytics.bucket)
    pulumi.export("emr_application_id", analytics.application_id)
    pulumi.export("report_job", analytics.job)


def _samples(layer: Layer, analytics: Analytics) -> None:
    """Have what Prometheus remembers filed beside the bill."""
    cluster = operated.operated_cluster(layer.spec)
    foundation, operations = layer.earlier(FOUNDATION), layer.earlier(OPERATIONS)
    late = {
        "ledger_table": operations.text("ledger_table"),
        "samples_bucket": analytics.bucket,
        "api": api_server(
            cluster.eks_cluster, foundation.text("eks_endpoint"), foundation.text("eks_ca")
        ),
    }
    Alone(
        SAMPLES,
        Shared(
            scope=Scope(cluster=cluster, account=layer.account),
            package=packaging.build(),
            late=late,
            placement=FunctionPlacement(
                subnet_ids=list(layer.private_subnet_ids().values()),
                security_group_ids=[operations.text("handlers_security_group_id")],
            ),
        ),
        opts=layer.both_opts,
    )
