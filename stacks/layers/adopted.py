"""The one layer of clusters that exist: what operates each Kafka of a description."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from core.cluster.adopted import operated
from core.cluster.adoption import Adoption
from core.naming import CLUSTER_TAG
from infra import iam
from infra.adopt.operations import Operations, OperationsArgs
from infra.eks import kubeconfig
from infra.functions.announcements import Group
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
    account = iam.Account.current(adopted.region, provider)
    eks = aws.eks.get_cluster_output(
        name=adopted.eks_cluster, opts=pulumi.InvokeOutputOptions(provider=provider)
    )
    authority = eks.certificate_authorities[0].data
    kubernetes = kubeconfig.provider(
        "kubernetes",
        eks_cluster=adopted.eks_cluster,
        region=adopted.region,
        endpoint=eks.endpoint,
        ca=authority,
        profile=aws.config.profile,
    )
    for kafka in adopted.kafkas:
        cluster = operated(adopted, kafka)
        made = Operations(
            cluster.prefix,
            OperationsArgs(
                cluster=cluster,
                account=account,
                groups=adopted.scaling_groups if cluster.acts else _groups(adopted),
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


def _groups(adopted: Adoption) -> Sequence[Group]:
    """Return the groups by name; EKS calls a managed node group's eks-<name>-<a random id>."""
    managed: list[Group] = [{"prefix": f"eks-{name}-"} for name in adopted.managed_node_groups]
    return [*adopted.scaling_groups, *managed]
