"""Layer 5: where bills are kept and reports are computed."""

from __future__ import annotations

import pulumi

from core.cluster.facts import of_spec
from core.naming import OPERATIONS
from core.settings import facts
from infra.analytics.workspace import Analytics, AnalyticsArgs
from stacks.layer import Layer


def build(layer: Layer) -> None:
    analytics = Analytics(
        "analytics",
        AnalyticsArgs(
            prefix=layer.spec.prefix,
            cluster=layer.spec.name,
            account=layer.account,
            facts=facts.to_json(of_spec(layer.spec)),
            incidents_bucket=layer.earlier(OPERATIONS).text("incidents_bucket"),
            tags=layer.tags.everywhere,
            ephemeral=layer.spec.ephemeral,
            bill_cluster_tag=layer.spec.bill_cluster_tag,
            bill_pool_tag=layer.spec.bill_pool_tag,
            split_cost_allocation=layer.spec.split_cost_allocation,
        ),
        opts=layer.on_aws,
    )
    pulumi.export("billing_bucket", analytics.bucket)
    pulumi.export("emr_application_id", analytics.application_id)
    pulumi.export("report_job", analytics.job)
