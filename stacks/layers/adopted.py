"""The one layer of clusters that exist: what operates each Kafka of a description."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from core.cluster.adopted import operated
from core.cluster.adoption import Adoption, Level
from core.errors import InvalidInput
from core.naming import CLUSTER_TAG
from infra import iam
from infra.adopt.operations import Operations, OperationsArgs
from infra.eks import kubeconfig
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
    if adopted.level is Level.ACT or adopted.gated:
        _refuse_others(adopted, provider)
    for kafka in adopted.kafkas:
        cluster = operated(adopted, kafka)
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


def _refuse_others(adopted: Adoption, provider: aws.Provider) -> None:
    """Raise InvalidInput for groups that another Stillwater manages.

    Hooks go by name, so it would lose its own; and its drains would have to ask a gate that knows
    nothing of them.
    """
    opts = pulumi.InvokeOptions(provider=provider)
    ours = {adopted.called(kafka) for kafka in adopted.kafkas}
    tags = {
        name: aws.autoscaling.get_group(name=name, opts=opts).tags
        for name in adopted.scaling_groups
    }
    owners = {
        name: tag.value for name, found in tags.items() for tag in found if tag.key == CLUSTER_TAG
    }
    problems = [
        f"Auto Scaling group {name} has the tag {CLUSTER_TAG}={owner}: another Stillwater manages "
        f"it; leave it to that one, or take it out of scaling_groups."
        for name, owner in owners.items()
        if owner not in ours
    ]
    if problems:
        raise InvalidInput(problems)
