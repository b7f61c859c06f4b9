"""Draws the running cluster's cost at list price: what Prometheus counts, times the price book.

An estimate of now, without discounts: the bill is `stillwater report`. Every price that goes
in is named in its panel, with the day it was read.
"""

from __future__ import annotations

from decimal import Decimal

from core.cluster import ClusterSpec, NodePool, Storage
from core.cost import pricing
from core.cost.pricing import HOURS_PER_MONTH, PriceBook
from infra.alerts.dashboards.panel import RATE, Dashboard, Panel, Prom
from infra.alerts.rules import Scope

BYTES_PER_GIB = pricing.BYTES_PER_GIB
# A byte between zones is billed to the one who sends and to the one who receives.
SIDES = 2
REPLICATION = "kafka_server_brokertopicmetrics_replicationbytesinpersec_total"
ASKED = "kube_persistentvolumeclaim_resource_requests_storage_bytes"


def dashboard(spec: ClusterSpec, book: PriceBook) -> Dashboard:
    """Return the dashboard of costs; raises InvalidInput where the price book lacks a price."""
    scope = Scope(spec)
    nodes = {pool: _compute(scope, pool, book) for pool in spec.pools}
    volumes = {pool: _storage(scope, pool, book) for pool in spec.pools}
    between, fixed = _between_zones(scope, book), _fixed_costs(book)
    parts = [*nodes.values(), *volumes.values(), between, fixed]
    whole = " + ".join(f"({part} or vector(0))" for part in parts)
    return Dashboard(
        key="cost",
        title="Kafka cost",
        description=f"List prices of {spec.region}, in dollars by the hour; the bill itself is "
        "`stillwater report`.",
        panels=[
            Panel(
                title="Now, by the hour",
                description="Everything below together: Kafka's nodes and volumes, replication "
                "between zones, control plane and load balancer. System nodes, clients' traffic "
                "and capacity units of the load balancer are not in it.",
                unit="currencyUSD",
                kind="stat",
                width=6,
                queries=(Prom(expression=whole),),
            ),
            Panel(
                title="At this rate, by the month",
                description=f"The same for {HOURS_PER_MONTH} hours.",
                unit="currencyUSD",
                kind="stat",
                width=6,
                queries=(Prom(expression=f"({whole}) * {HOURS_PER_MONTH}"),),
            ),
            Panel(
                title="What does not depend on load, by the hour",
                description="Control plane and load balancer: "
                f"{_price_text(book, 'eks_cluster_hour')}; {_price_text(book, 'nlb_hour')}.",
                unit="currencyUSD",
                width=12,
                queries=(Prom(expression=fixed, legend="control plane and load balancer"),),
            ),
            _by_pool("Nodes", "Instances that carry a pod of Kafka's", spec, nodes, book),
            _volumes(volumes, book),
            Panel(
                title="Replication between zones, by the hour",
                description="What followers fetch, as if all of it came from another zone, which "
                "rack awareness makes true where a partition has a replica per zone: the most it "
                f"can cost. {_price_text(book, 'inter_zone_gib')}, on either side.",
                unit="currencyUSD",
                width=24,
                queries=(Prom(expression=between, legend="replication"),),
            ),
        ],
    )


def _compute(scope: Scope, pool: NodePool, book: PriceBook) -> str:
    pods = scope.pod_info([pool], ',node!=""')
    # One Kafka pod a node: nodes, not pods, are billed, and a node in rotation is counted twice.
    return f"count(count by (node) ({pods})) * {book.instance_hour(pool.instance_type).usd}"


def _storage(scope: Scope, pool: NodePool, book: PriceBook) -> str:
    return " + ".join(
        _volume(scope, pool, number, volume, book) for number, volume in enumerate(pool.volumes)
    )


def _volume(scope: Scope, pool: NodePool, number: int, volume: Storage, book: PriceBook) -> str:
    """Return what a pool's volumes of one number cost by the hour: room, and speed beyond gp3's."""
    pools = "|".join(scope.node_pools([pool]))
    claims = (
        f'{ASKED}{{namespace="{scope.namespace}",'
        f'persistentvolumeclaim=~"data-{number}-{scope.spec.name}-({pools})-[0-9]+"}}'
    )
    speed = (
        pricing.billed_iops(volume.iops) * book.price("gp3_iops_month").usd
        + pricing.billed_gib_per_s(volume.throughput_mib_per_s) * book.price("gp3_gibps_month").usd
    )
    room = f"sum({claims}) / {BYTES_PER_GIB} * {book.price('gp3_gib_month').usd}"
    # A volume that is not there yet costs nothing; without 0 for it, neither would the others.
    return f"(({room} + count({claims}) * {_number(speed)}) / {HOURS_PER_MONTH} or vector(0))"


def _between_zones(scope: Scope, book: PriceBook) -> str:
    price = book.price("inter_zone_gib").usd * SIDES * pricing.SECONDS_PER_HOUR
    fetched = f"sum(rate({REPLICATION}{scope.kafka}[{RATE}]))"
    return f"{fetched} / {BYTES_PER_GIB} * {_number(price)}"


def _fixed_costs(book: PriceBook) -> str:
    return f"vector({book.price('eks_cluster_hour').usd + book.price('nlb_hour').usd})"


def _by_pool(
    title: str, what: str, spec: ClusterSpec, pools: dict[NodePool, str], book: PriceBook
) -> Panel:
    said = "; ".join(
        sorted(
            {_price_text(book, f"{pricing.INSTANCE_HOUR}:{p.instance_type}") for p in spec.pools}
        )
    )
    return Panel(
        title=f"{title}, by the hour",
        description=f"{what}, by pool, on demand. {said}.",
        unit="currencyUSD",
        queries=tuple(Prom(expression=each, legend=pool.name) for pool, each in pools.items()),
    )


def _volumes(pools: dict[NodePool, str], book: PriceBook) -> Panel:
    said = "; ".join(
        _price_text(book, item) for item in ("gp3_gib_month", "gp3_iops_month", "gp3_gibps_month")
    )
    return Panel(
        title="Volumes, by the hour",
        description="gp3: room, and IOPS and throughput beyond what is included, as described. "
        f"{said}.",
        unit="currencyUSD",
        queries=tuple(Prom(expression=each, legend=pool.name) for pool, each in pools.items()),
    )


def _price_text(book: PriceBook, item: str) -> str:
    price = book.price(item)
    return f"{item} {price.usd} USD (read {price.as_of})"


def _number(amount: Decimal) -> str:
    return f"{pricing.plain(amount):f}"
