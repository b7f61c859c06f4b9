"""Puts together what an environment takes of its account, from the spec and from infra's names."""

from __future__ import annotations

from core.cluster import ClusterSpec
from core.cluster.needs import instance_types_of, quotas_of, subnets_of
from core.preflight.account import Needs
from infra import buckets
from infra.eks import addon_versions, addons
from infra.tags import Tags


def needs_of(spec: ClusterSpec, account: str) -> Needs:
    """Return what a spec takes of an account; buckets' names hold the account's number."""
    chosen = spec.kubernetes.addon_versions
    tags = Tags.of(spec).everywhere
    wanted = addons.addon_names(node_monitoring=spec.kubernetes.node_monitoring)
    told = {addon: addons.configuration(addon, tags) for addon in wanted}
    return Needs(
        prefix=spec.prefix,
        region=spec.region,
        zones=spec.availability_zones,
        instance_types=instance_types_of(spec),
        quotas=quotas_of(spec),
        subnets=subnets_of(spec),
        kubernetes=spec.kubernetes.version,
        addons={addon: addon_versions.version(addon, chosen) for addon in wanted},
        addon_configuration={addon: each for addon, each in told.items() if each is not None},
        buckets=tuple(
            buckets.bucket_name(spec.prefix, purpose, account)
            for purpose in ("incidents", "billing")
        ),
        export=f"{spec.prefix}-bill",
        slack_secret=None if spec.slack is None else spec.slack.secret_name,
        encryption_key=spec.encryption_key,
        slack_url="" if spec.slack is None else spec.slack.api_url,
    )
