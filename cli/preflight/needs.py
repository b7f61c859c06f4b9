"""Puts together what an environment takes of its account, from the spec and from infra's names."""

from __future__ import annotations

from core.cluster import ClusterSpec
from core.cluster.addresses import instance_types_of, quotas_of, subnets_of
from core.cluster.network import service_cidr
from core.model.account import NeededNetwork, Needs
from infra import buckets
from infra.eks import addon_versions, addons
from infra.network import vpc
from infra.tags import cluster_tags


def needs_of(spec: ClusterSpec, account: str) -> Needs:
    """Return what a spec takes of an account; buckets' names hold the account's number."""
    chosen = spec.kubernetes.addon_versions
    tags = cluster_tags(spec).everywhere
    wanted = addons.addon_names(node_monitoring=spec.kubernetes.node_monitoring)
    told = {addon: addons.configuration(addon, spec.region, tags) for addon in wanted}
    return Needs(
        prefix=spec.prefix,
        region=spec.region,
        zones=spec.availability_zones,
        instance_types=instance_types_of(spec),
        quotas=quotas_of(spec),
        network=_network_of(spec),
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
        reserved_concurrency=spec.webhook_concurrency,
        slack_url="" if spec.slack is None else spec.slack.api_url,
    )


def _network_of(spec: ClusterSpec) -> NeededNetwork | None:
    existing, zone = spec.network.existing, spec.load_balancer.private_zone
    if existing is None:
        return None
    addresses, zones = subnets_of(spec), {s: z for z, s in existing.private_subnet_ids.items()}
    service = f"com.amazonaws.{spec.region}.{{}}"
    return NeededNetwork(
        vpc=existing.vpc_id,
        blocks=spec.network.blocks,
        services=service_cidr(spec.network.blocks),
        subnets={subnet: (zones[subnet], least) for subnet, least in addresses.items()},
        route_tables=existing.private_route_table_ids,
        gateways=tuple(map(service.format, vpc.GATEWAYS)),
        interfaces=tuple(map(service.format, vpc.INTERFACES))
        if spec.network.interface_endpoints
        else (),
        private_zone=None if zone is None else zone.lower(),
    )
