"""Runs a preflight: reads an account for core.checks.new_cluster, and shows what it would refuse.

What an environment takes is put together from the spec and from infra's names. Reading is Describe,
Get, List, DryRun and simulation only, every part at once; what one cannot be asked is an Unknown
with the reason, and costs no other. Shown as a line per finding, or as one JSON object.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from cli.answers import answer_or_reason
from cli.aws import PATIENCE, Clients, require_login
from cli.preflight.asked import PARTS, AccountClients
from cli.target import Target
from cli.terminal import counted, show_findings
from core.checks.facts import ClusterFacts
from core.checks.finding import Finding, Weight, exit_code
from core.checks.table import findings
from core.cluster import ClusterSpec
from core.cluster.addresses import instance_types_of, quotas_of, subnets_of
from core.cluster.network import service_cidr
from core.ground.errors import InvalidInput, StillwaterError
from core.model.account import Account, NeededNetwork, Needs
from infra import buckets, network, versions
from infra.eks import cluster
from infra.tags import cluster_tags


def needs_of(spec: ClusterSpec, account: str) -> Needs:
    """Return what a spec takes of an account; buckets' names hold the account's number."""
    chosen = spec.kubernetes.addon_versions
    tags = cluster_tags(spec).everywhere
    wanted = cluster.addon_names(node_monitoring=spec.kubernetes.node_monitoring)
    told = {addon: cluster.configuration(addon, spec.region, tags) for addon in wanted}
    return Needs(
        prefix=spec.prefix,
        region=spec.region,
        zones=spec.availability_zones,
        instance_types=instance_types_of(spec),
        quotas=quotas_of(spec),
        network=_network_of(spec),
        kubernetes=spec.kubernetes.version,
        addons={addon: versions.version(addon, chosen) for addon in wanted},
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
    return NeededNetwork(
        vpc=existing.vpc_id,
        blocks=spec.network.blocks,
        services=service_cidr(spec.network.blocks),
        subnets={subnet: (zones[subnet], least) for subnet, least in addresses.items()},
        route_tables=existing.private_route_table_ids,
        gateways=network.GATEWAYS,
        interfaces=tuple(network.INTERFACES) if spec.network.interface_endpoints else (),
        private_zone=None if zone is None else zone.lower(),
    )


THREADS = 12


def read(
    needs_of: Callable[[str], Needs],
    clients: Callable[..., Any],
    region: str,
    show: Callable[[str], None],
) -> tuple[Needs, Account]:
    """Return what is needed and what an account says; raise without an identity.

    `needs_of` is told the account's number, and `clients` makes a client of a service.
    """
    made = Clients(clients)
    with require_login("the account"):
        identity = made("sts").get_caller_identity()
    caller, number = str(identity["Arn"]), str(identity["Account"])
    needs = needs_of(number)
    asked = AccountClients(needs, caller, made)
    found: dict[str, Any] = {}
    with ThreadPoolExecutor(THREADS) as pool:
        futures = {part: pool.submit(answer_or_reason, ask, asked) for part, ask in PARTS.items()}
        for done, (part, future) in enumerate(futures.items(), 1):
            found[part] = future.result()
            show(f"{done} of {len(PARTS)} parts of account {number} asked")
    return needs, Account(caller=caller, number=number, region=region, **found)


@dataclass(frozen=True, slots=True)
class Preflight:
    """What one preflight found."""

    cluster: str
    account: str
    caller: str
    region: str
    findings: list[Finding]

    @property
    def exit_code(self) -> int:
        return exit_code(self.findings)

    @property
    def refused(self) -> list[Finding]:
        return [each for each in self.findings if each.weight is Weight.REFUSED]


def examine(target: Target, console: Console) -> Preflight:
    """Ask the account of a target everything; raise StillwaterError without an identity."""
    spec = target.spec

    def clients(service: str, region: str | None = None) -> Any:
        # boto3's stubs know each service by its name alone.
        session: Any = target.session
        return session.client(
            service,
            region_name=region or spec.region,
            endpoint_url=target.endpoint_url,
            config=PATIENCE,
        )

    region = target.session.region_name or spec.region
    with console.status("Asking the account") as status:
        needs, account = read(lambda number: needs_of(spec, number), clients, region, status.update)
    found = findings(ClusterFacts(needs=needs, account=account, read_at=time.time()))
    return Preflight(spec.prefix, account.number, account.caller, account.region, found)


def stop_refused_up(target: Target, console: Console) -> None:
    """Stop an `up` that the account would refuse; say what is not known, and go on."""
    try:
        done = examine(target, console)
    except StillwaterError as error:
        raise InvalidInput([f"{error} Nothing was made."]) from None
    show_findings(done.findings, console, verdict(done))
    if done.refused:
        problem = (
            f"The account would refuse {done.cluster}, so nothing was made: fix the above, or go "
            "on with --skip-preflight."
        )
        raise InvalidInput([problem])


def as_json(done: Preflight) -> str:
    """Return a preflight as one JSON object."""
    return json.dumps({"exit_code": done.exit_code, **asdict(done)}, indent=2, ensure_ascii=False)


def verdict(done: Preflight) -> str:
    """Return the last line: how much of what, and of which account."""
    where = f"{done.cluster} in account {done.account}, {done.region}, as {done.caller}"
    return f"{where}: {counted(done.findings) or 'nothing stands in the way'}."
