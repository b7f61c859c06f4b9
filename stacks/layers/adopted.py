"""The one layer of clusters that exist: what operates each Kafka of a description."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from core.cluster.adopted import operated_kafka
from core.cluster.adoption import Adoption, Level
from core.ground.naming import CLUSTER_TAG
from infra import iam
from infra.adopt import Operations, OperationsArgs, refuse_others
from infra.eks.cluster import kubernetes_provider
from infra.tags import MANAGED_BY_TAG


def build(adopted: Adoption) -> None:
    """Build what operates each Kafka, in one stack."""
    provider = aws.Provider(
        "aws",
        region=adopted.region,
        profile=aws.config.profile,
        default_tags=aws.ProviderDefaultTagsArgs(
            tags={CLUSTER_TAG: adopted.eks_cluster, MANAGED_BY_TAG: "stillwater"}
        ),
    )
    asking = pulumi.InvokeOptions(provider=provider)
    account = iam.Account.current(asking, adopted.region)
    eks = aws.eks.get_cluster_output(
        name=adopted.eks_cluster, opts=pulumi.InvokeOutputOptions(provider=provider)
    )
    authority = eks.certificate_authorities[0].data
    kubernetes = kubernetes_provider(
        "kubernetes",
        eks_cluster=adopted.eks_cluster,
        region=adopted.region,
        endpoint=eks.endpoint,
        ca=authority,
        profile=aws.config.profile,
    )
    if adopted.level is Level.ACT or adopted.gated:
        refuse_others(
            adopted.scaling_groups,
            {adopted.called(kafka) for kafka in adopted.kafkas},
            asking,
        )
    for kafka in adopted.kafkas:
        cluster = operated_kafka(adopted, kafka)
        made = Operations(
            cluster.prefix,
            OperationsArgs(
                cluster=cluster,
                account=account,
                groups=adopted.matched,
                endpoint=eks.endpoint,
                authority=authority,
                bootstrap=kafka.bootstrap or "",
                subnet_ids=adopted.subnets,
                security_group_ids=adopted.security_groups,
            ),
            opts=pulumi.ResourceOptions(providers=[provider, kubernetes]),
        )
        pulumi.export(
            cluster.prefix,
            {
                "ledger_table": made.ledger_table,
                "events_queue_url": made.events_queue_url,
                "ticks_queue_url": made.ticks_queue_url,
            },
        )
