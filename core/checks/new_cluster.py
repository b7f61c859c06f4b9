"""Decides what an account would refuse of a cluster that is to be made, part by part.

Sources: EKS's subnet requirements and CreateCluster, Lambda's reserved concurrency, EBS's default
key and its grants, Service Quotas, Secrets Manager's recovery window, CreateVpcEndpoint,
CreateHostedZone (docs/how-to/preflight.md). Of the JSON schema of an EKS add-on only what EKS
refuses in practice is read: unknown keys and wrong types.
"""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from core.checks.facts import ClusterFacts
from core.checks.finding import Finding, Judge, Weight, rule, unknown, worth_knowing
from core.ground.fields import Unknown, entry, known_items
from core.ground.regions import WITHOUT_EKS, refusal
from core.ground.words import listing
from core.model.account import (
    ENABLED,
    SCALING_ROLE,
    Account,
    Concurrency,
    EncryptionKey,
    NeededNetwork,
    Needs,
    QuotaName,
    StandingVpc,
    Subnet,
    Zone,
)

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def refused_keys(
    schema: Mapping[str, Any], value: object, root: Mapping[str, Any] | None = None, at: str = ""
) -> Iterator[str]:
    """Yield the dotted name of each key that the schema refuses."""
    root = schema if root is None else root
    schema = _resolved_schema(schema, root)
    kinds = schema.get("type")
    allowed = [kinds] if isinstance(kinds, str) else list(kinds or ())
    if allowed and not any(_is(value, kind) for kind in allowed):
        yield at or "(all of it)"
        return
    if not isinstance(value, Mapping):
        return
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for key, inner in value.items():
        name = f"{at}.{key}" if at else str(key)
        if key in properties:
            yield from refused_keys(properties[key], inner, root, name)
        elif others is False:
            yield name
        elif isinstance(others, Mapping):
            yield from refused_keys(others, inner, root, name)


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, _TYPES.get(kind, (object,)))


def _resolved_schema(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    seen: set[str] = set()
    while isinstance(reference := schema.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        found: Any = root
        for part in reference.removeprefix("#/").split("/"):
            found = found.get(part, {}) if isinstance(found, Mapping) else {}
        schema = found
    return schema


QUOTAS = {
    key: QuotaName(**named)
    for key, named in tomllib.loads(
        Path(__file__).with_name("quotas.toml").read_text("utf-8")
    ).items()
}


def subnets(wanted: NeededNetwork, found: Mapping[str, Subnet], missing: str) -> Iterator[Finding]:
    """Yield what AWS would refuse of each subnet that is not what it is named for."""
    for subnet, (zone, addresses) in wanted.subnets.items():
        there = found.get(subnet)
        if there is None:
            yield _no(
                "network",
                "subnets",
                missing.format(subnet),
                "name one of `aws ec2 describe-subnets` in network.existing",
            )
        elif there.vpc != wanted.vpc:
            yield _no(
                "network",
                "subnets",
                f"subnet {subnet} is of {there.vpc} and network.existing.vpc_id is {wanted.vpc}",
                "name a subnet of that VPC",
            )
        elif there.zone != zone:
            yield _no(
                "network",
                "subnets",
                f"subnet {subnet} is in {there.zone} and network.existing.private_subnet_ids names "
                f"it for {zone}",
                "name one there",
            )
        elif there.ipv6_only:
            yield _no(
                "network",
                "subnets",
                f"subnet {subnet} has IPv6 addresses alone, and EKS and the load balancer take "
                "IPv4 ones here",
                "name one that has them",
            )
        elif there.free_addresses < addresses:
            yield _no(
                "network",
                "subnets",
                f"subnet {subnet} has {there.free_addresses} free addresses, and the load "
                f"balancer, the control plane and the nodes there take {addresses} at least",
                "name a larger subnet in network.existing, or free some",
            )


def refused(wanted: NeededNetwork, found: StandingVpc, region: str) -> Iterator[Finding]:
    """Yield what AWS would not make in a VPC, or nodes not join from."""
    vpc, called = wanted.vpc, f"com.amazonaws.{region}.{{}}".format
    for attribute in found.attributes_off:
        yield _no(
            "network",
            "the VPC",
            f"{vpc} has {attribute} off, without which no node joins and no private name is "
            "answered",
            "set it by `aws ec2 modify-vpc-attribute`",
        )
    services = ipaddress.ip_network(wanted.services)
    for block in sorted(found.blocks):
        if ipaddress.ip_network(block).overlaps(services):
            yield _no(
                "network",
                "the VPC",
                f"{vpc} has the block {block}, which overlaps {services}, where Kubernetes' "
                "Services would be",
                "name it in network.secondary_cidrs, and another is chosen",
            )
    for endpoint in found.endpoints:
        entered = (endpoint.tables or frozenset()) & set(wanted.route_tables)
        for table in sorted(entered) if endpoint.service in wanted.gateways else ():
            yield _no(
                "network",
                "the VPC",
                f"{table} has a route to an endpoint of {called(endpoint.service)} already, and "
                "AWS enters none twice",
                "leave it out of network.existing.private_route_table_ids",
            )
    answering = {each.service for each in found.endpoints if each.private_name}
    if taken := sorted(set(wanted.interfaces) & answering):
        yield _no(
            "network",
            "the VPC",
            f"{vpc} has endpoints with private DNS of {', '.join(map(called, taken))}, and AWS "
            "takes no second of a name",
            "set network.interface_endpoints to false and make those that are missing, or "
            "delete these",
        )
    if wanted.private_zone in found.hosted_zones:
        yield _no(
            "network",
            "the VPC",
            f"{vpc} has a private hosted zone {wanted.private_zone}, and Route 53 takes no "
            "second of a name",
            "leave load_balancer.private_zone out and make the record there",
        )


def noticed(wanted: NeededNetwork, found: StandingVpc) -> Iterator[Finding]:
    """Yield each block that a VPC has not: rules would admit strangers by it."""
    for block in wanted.blocks:
        if block not in found.blocks:
            yield worth_knowing(
                "account-network",
                "the VPC",
                f"network names the block {block} and {wanted.vpc} has "
                f"{', '.join(sorted(found.blocks))}",
                "name those, so that clients there are let in",
            )


# Lambda: reserving may not leave fewer than this unreserved, or than all of a smaller limit: an
# account with 10 or 50 in all is refused every reservation.
LEAST_UNRESERVED = 100


AccountJudge = Callable[[Needs, Account, Any], Iterator[Finding]]


def account_rule(part: str | None = None, title: str = "") -> Callable[[AccountJudge], Judge]:
    """Enter a judge of what a cluster needs of an account in the table of rules.

    It is given what is known of a part of the account. Where that could not be read, the title says
    of what nothing is known, and the judge is not asked.
    """

    def enter(judge: AccountJudge) -> Judge:
        @rule("needs", "account")
        @wraps(judge)
        def asked(seen: ClusterFacts) -> Iterator[Finding]:
            needs, account = seen.needs, seen.account
            if isinstance(needs, Unknown) or isinstance(account, Unknown):
                return
            found = None if part is None else getattr(account, part)
            if isinstance(found, Unknown):
                yield unknown(title, found)
            else:
                yield from judge(needs, account, found)

        return asked

    return enter


def _no(check: str, part: str, evidence: str, remedy: str) -> Finding:
    return Finding(f"account-{check}", Weight.REFUSED, part, evidence, remedy)


@account_rule()
def region(needs: Needs, account: Account, _: None) -> Iterator[Finding]:
    part = "region"
    other = refusal(needs.region)
    if other is not None:
        yield _no("region", part, *other.removesuffix(".").rsplit("; ", 1))
    if account.region != needs.region:
        yield _no(
            "region",
            part,
            f"the session is in {account.region} and the spec in {needs.region}",
            "set aws:region of the stacks, or correct the spec",
        )
    if isinstance(account.region_status, Unknown):
        yield unknown(part, account.region_status)
    elif account.region_status == "not-opted-in":
        yield _no(
            "region",
            part,
            f"region {needs.region} is not enabled in account {account.number}",
            f"enable it with `aws account enable-region --region-name {needs.region}` and wait "
            "some minutes",
        )


@account_rule("zones", "zones")
def zones(needs: Needs, account: Account, found: Mapping[str, Zone]) -> Iterator[Finding]:
    fit = sorted(
        name for name, zone in found.items() if zone.available and zone.zone_id not in WITHOUT_EKS
    )
    instead = f"choose among {', '.join(fit) or 'other zones'}"
    for name in needs.zones:
        zone = found.get(name)
        if zone is None:
            yield _no("zones", "zones", f"account {account.number} has no zone {name}", instead)
        # A control plane that stands is in none, and nodes may be in any.
        elif zone.zone_id in WITHOUT_EKS and account.stands is not True:
            yield _no(
                "zones",
                "zones",
                f"zone {name} of account {account.number} is {zone.zone_id}, where EKS places no "
                "control plane: CreateCluster refuses its subnet",
                instead,
            )
        elif not zone.available:
            yield _no(
                "zones",
                "zones",
                f"zone {name} is not available at the moment",
                f"{instead}, or wait",
            )


@account_rule("offerings", "instance types")
def offerings(
    needs: Needs, _account: Account, found: Mapping[str, frozenset[str]]
) -> Iterator[Finding]:
    for name, zones in needs.instance_types.items():
        offered = found.get(name, frozenset())
        missing = sorted(zones - offered)
        if missing:
            where = f"only in {', '.join(sorted(offered))}" if offered else "nowhere in the region"
            yield _no(
                "offerings",
                "instance types",
                f"instance type {name} is not offered in {', '.join(missing)}, {where}: the groups "
                "there would never start a node",
                "choose another type or other zones",
            )


@account_rule()
def network(needs: Needs, account: Account, _: None) -> Iterator[Finding]:
    wanted = needs.network
    if wanted is None or account.stands is True:
        return
    if isinstance(account.subnets, Unknown):
        yield unknown("subnets", account.subnets)
    else:
        where = f"account {account.number} has no subnet {{}} in {needs.region}"
        yield from subnets(wanted, account.subnets, where)
    if isinstance(account.vpc, Unknown):
        yield unknown("the VPC", account.vpc)
    elif account.vpc is None:
        yield _no(
            "network",
            "the VPC",
            f"account {account.number} has no VPC {wanted.vpc} in {needs.region}",
            "name one of `aws ec2 describe-vpcs` in network.existing",
        )
    else:
        yield from refused(wanted, account.vpc, needs.region)
        yield from noticed(wanted, account.vpc)


@account_rule()
def quotas(needs: Needs, account: Account, _: None) -> Iterator[Finding]:
    if account.stands is True:
        return
    for key, wanted in needs.quotas.items():
        if wanted > 0:
            yield from _quota(key, wanted, account)


def _quota(key: str, wanted: float, account: Account) -> Iterator[Finding]:
    name = QUOTAS[key]
    quota, part = entry(account.quotas, key), f"quota of {name.what}"
    if isinstance(quota, Unknown):
        yield unknown(part, quota)
    elif wanted > quota.left:
        yield _no(
            "quotas",
            part,
            f"{quota.used:g} of {quota.limit:g} {name.what} are used and this cluster takes "
            f"{wanted:g}, {wanted - quota.left:g} too many",
            f"ask for more of {name.name!r} ({name.service}) in Service Quotas",
        )


@account_rule("concurrency", "Lambda's concurrency")
def concurrency(needs: Needs, _account: Account, found: Concurrency) -> Iterator[Finding]:
    part, reserved = "Lambda's concurrency", needs.reserved_concurrency
    left = min(LEAST_UNRESERVED, found.limit)
    room = max(0, found.unreserved + found.reserved - left)
    counted = f"{found.unreserved} of Lambda's {found.limit} concurrent executions are unreserved"
    risk = (
        f"strangers who call the webhook's public URL can take all {found.unreserved} and stop the "
        f"functions that hold nodes"
    )
    more = "ask for more of 'Concurrent executions' (lambda) in Service Quotas"
    if reserved > room:
        remedy = f"set it to {room} or less" if room else f"set it to 0, with which {risk}"
        yield _no(
            "concurrency",
            part,
            f"webhook_concurrency is {reserved} and the account has room for {room}: {counted}, "
            f"and AWS keeps {left} so",
            f"{more}, or {remedy}",
        )
    elif not reserved:
        remedy = f"reserve some, since there is room for {room}" if room else more
        yield worth_knowing(
            "account-concurrency",
            part,
            f"webhook_concurrency is 0 and {counted}: {risk}",
            f"{remedy}",
        )


@account_rule("kubernetes", "Kubernetes version")
def kubernetes(needs: Needs, _account: Account, found: Mapping[str, str]) -> Iterator[Finding]:
    part = "Kubernetes version"
    status = found.get(needs.kubernetes)
    standard = sorted(version for version, s in found.items() if s == "STANDARD_SUPPORT")
    if status in (None, "UNSUPPORTED"):
        yield _no(
            "kubernetes",
            part,
            f"EKS does not offer Kubernetes {needs.kubernetes} here",
            f"set kubernetes.version to one of {', '.join(standard)}",
        )
    elif status == "EXTENDED_SUPPORT":
        yield worth_knowing(
            "account-kubernetes",
            part,
            f"Kubernetes {needs.kubernetes} is in extended support, at 0.60 USD an hour in place "
            "of 0.10",
            f"one of {', '.join(standard)} is not",
        )


@account_rule()
def addons(needs: Needs, account: Account, _: None) -> Iterator[Finding]:
    for addon, version in needs.addons.items():
        part = f"add-on {addon}"
        offered = entry(account.addons, addon)
        if isinstance(offered, Unknown):
            yield unknown(part, offered)
        elif version not in offered:
            newest = max(offered, default="no version")
            yield _no(
                "addons",
                part,
                f"EKS offers no {addon} {version} for Kubernetes {needs.kubernetes}",
                f"name one in kubernetes.addon_versions, such as {newest}",
            )
    for addon, told in needs.addon_configuration.items():
        part = f"configuration of add-on {addon}"
        schema = entry(account.addon_schemas, addon)
        if isinstance(schema, Unknown):
            yield unknown(part, schema)
            continue
        for key in refused_keys(schema, told):
            yield _no(
                "addons",
                part,
                f"{addon} {needs.addons.get(addon, '')} does not take {key} in its configuration",
                "name another version in kubernetes.addon_versions",
            )


@account_rule("volumes_key", "the key of volumes")
def volumes_key(_needs: Needs, _account: Account, found: EncryptionKey) -> Iterator[Finding]:
    part = "the key of volumes"
    if found.state != ENABLED:
        yield _no(
            "volumes-key",
            part,
            f"the key of volumes {found.name} is not enabled, so that no volume can be made or "
            "attached",
            "enable it, or name another: encryption_key, or EBS's default key",
        )
    elif found.bars(SCALING_ROLE):
        yield _no(
            "volumes-key",
            part,
            f"the key of volumes {found.name} is your own, and no grant or policy lets "
            f"{SCALING_ROLE} use it. Instances would end with Client.InternalError as they start",
            "grant it, or name another: encryption_key, or EBS's default key aws/ebs",
        )


@account_rule()
def names(needs: Needs, account: Account, _: None) -> Iterator[Finding]:
    if account.stands is True:
        return
    if isinstance(account.stands, Unknown):
        yield unknown(f"cluster {needs.prefix}", account.stands)
    taken = account.taken
    for kind, names in ({"resources": taken} if isinstance(taken, Unknown) else taken).items():
        if isinstance(names, Unknown):
            yield unknown(f"names of {kind}", names)
        elif names:
            yield _no(
                "names",
                f"names of {kind}",
                f"{listing(names)}: {kind} of these names are there already and are not this "
                "environment's",
                "delete them, or choose another environment or name",
            )
    if isinstance(account.pending_secrets, Unknown):
        yield unknown("secrets", account.pending_secrets)
    for name in known_items(account.pending_secrets):
        yield _no(
            "names",
            "secrets",
            f"secret {name} is scheduled for deletion, and its name is taken until then",
            f"`aws secretsmanager restore-secret --secret-id {name}`, or delete it with "
            "--force-delete-without-recovery",
        )


@account_rule("denied", "permissions")
def permissions(_needs: Needs, account: Account, found: Mapping[str, str]) -> Iterator[Finding]:
    by: dict[str, list[str]] = {}
    for action, who in found.items():
        by.setdefault(who, []).append(action)
    for who, actions in by.items():
        yield _no(
            "permissions",
            "permissions",
            f"{account.caller} may not {', '.join(sorted(actions))}: {who}",
            "have it allowed, or run `up` with an identity that may",
        )


@account_rule("bill", "the bill")
def bill(_needs: Needs, account: Account, found: str) -> Iterator[Finding]:
    if found:
        yield _no(
            "bill",
            "the bill",
            f"{account.caller} may not see the bill ({found}), so that its export is refused",
            "activate IAM access to billing as the root user, or have the management account "
            "allow it",
        )


@account_rule("slack", "Slack")
def slack(needs: Needs, _account: Account, found: str | None) -> Iterator[Finding]:
    if found:
        yield _no(
            "slack",
            "Slack",
            f"Slack does not take the token of secret {needs.slack_secret} ({found})",
            "store the bot token of the installed app in it",
        )
