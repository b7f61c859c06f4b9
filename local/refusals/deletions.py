"""Refuses deletions as AWS does: of what is protected, and what others still hold.

The engine deletes what depends first. What it cannot see (a name that was written out, a stack of
its own) is refused here as AWS refuses it. The rows are neighbours.toml's `protected` and `held`;
their sources are each operation's errors in its API reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from local.refusals.fields import values
from local.refusals.neighbours import TABLE, about
from local.refusals.refusal import Refusal, Wanted

_PLACES = ("subnetId", "subnets.*", "subnetMappings.*.subnetId")


def refusals(leaving: Wanted, others: Iterable[Wanted]) -> Iterator[Refusal]:
    """Yield why AWS would not delete a resource, whose name here is its id, beside the others."""
    known = list(others)
    for row in TABLE["protected"]:
        if leaving.type == f"aws:{row['type']}" and leaving.inputs.get(row["by"]) is True:
            yield about(leaving, row["operation"], row["code"], row["says"], row["by"])
    for row in TABLE["held"]:
        if leaving.type != f"aws:{row['type']}" or leaving.inputs.get(row.get("forced", "-")):
            continue
        named = str(leaving.inputs.get(row.get("by", "-")) or leaving.name)
        for other in known:
            paths = row["holders"].get(other.type.removeprefix("aws:"), ())
            if any(str(each) == named for path in paths for each in values(other.inputs, path)):
                message = f"{row['says'].format(named)} It is held by {other.name}."
                yield about(leaving, row["operation"], row["code"], message)
    if leaving.type == "aws:ec2/internetGateway:InternetGateway":
        yield from _of_addresses(leaving, known)


def _of_addresses(leaving: Wanted, known: Iterable[Wanted]) -> Iterator[Refusal]:
    """Yield why a gateway stays attached: an address of its VPC that is reached from outside."""
    vpc = leaving.inputs.get("vpcId")
    places = {each.name for each in known if vpc and each.inputs.get("vpcId") == vpc}
    for each in known:
        inside = {str(place) for path in _PLACES for place in values(each.inputs, path)}
        nat = each.type.endswith(":NatGateway") and each.inputs.get("connectivityType") != "private"
        balancer = each.type.endswith(":LoadBalancer") and not each.inputs.get("internal")
        if (nat or balancer) and inside & places:
            message = f"Network {vpc} has some mapped public address(es). Please unmap those "
            message += (
                f"public address(es) before detaching the gateway. It is held by {each.name}."
            )
            yield about(leaving, "DetachInternetGateway", "DependencyViolation", message)
