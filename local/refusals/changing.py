"""Refuses steps of what stands: a value that AWS takes of a new resource alone, a deletion, drift.

The real provider reads a resource back. A key that AWS has added where the program set none is a
change, and under an input that cannot be updated it is a replacement, at every `up` from then on.
An addition that the provider takes for computed changes nothing and stands in no table.

The rows are neighbours.toml's `steps` ({0} is what it was, {1} what it is to be), `protected` and
`held`. The engine deletes what depends first. What it cannot see (a name that was written out, a
stack of its own) is refused here as AWS refuses it; sources are each operation's errors in its API
reference.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from local.refusals.documents import values
from local.refusals.neighbours import TABLE, Row, about
from local.refusals.refusal import Refusal, Wanted, said

ACCOUNT = "123456789012"
Inputs = Mapping[str, Any]


def _billing_view(inputs: Inputs, account: str) -> dict[str, Any]:
    """https://github.com/hashicorp/terraform-provider-aws/issues/46402."""
    answered = copy.deepcopy(dict(inputs))
    for tables in values(answered, "export.dataQueries.*.tableConfigurations"):
        for settings in tables.values():
            view = f"arn:aws:billing::{account}:billingview/primary"
            settings.setdefault("BILLING_VIEW_ARN", view)
    return answered


# Of a type the input that AWS adds to, which cannot be updated, and the inputs as they read after.
ADDITIONS: Mapping[str, tuple[str, Callable[[Inputs, str], dict[str, Any]]]] = {
    "aws:bcmdata/export:Export": ("export", _billing_view),
}


def as_answered(type_: str, inputs: Inputs, account: str = ACCOUNT) -> dict[str, Any]:
    """Return a resource's inputs as AWS would give them back."""
    return ADDITIONS[type_][1](inputs, account) if type_ in ADDITIONS else dict(inputs)


def replacing(type_: str) -> frozenset[str]:
    """Return the inputs of a type that cannot be updated where AWS adds to them."""
    return frozenset({ADDITIONS[type_][0]} if type_ in ADDITIONS else ())


def drift_refusals(wanted: Wanted) -> Iterator[Refusal]:
    """Yield what the next `up` would change although nobody has changed anything."""
    if as_answered(wanted.type, wanted.inputs) != dict(wanted.inputs):
        at, _ = ADDITIONS[wanted.type]
        message = f"AWS adds to {at}, so that {wanted.name} is replaced at every later `up`; set "
        yield Refusal("the next up", "Drift", f"{message}what AWS adds.", at)


def _minors(old: str, new: str) -> list[int]:
    found = [re.fullmatch(r"1\.(\d+)", each) for each in (old, new)]
    return [int(each[1]) for each in found if each]


def _is_far(_: Row, old: str, new: str) -> bool:
    """Say whether a version is no neighbour: a control plane goes one up, or rolls one back.

    Whether it was upgraded within seven days, and its nodes are back, only its history says.
    """
    minors = _minors(old, new)
    return len(minors) == 2 and abs(minors[1] - minors[0]) > 1


def _is_far_back(row: Row, old: str, new: str) -> bool:
    minors = _minors(old, new)
    return _is_far(row, old, new) and minors[1] < minors[0]


def _is_back(row: Row, old: str, new: str) -> bool:
    order = row["order"]
    return {old, new} <= {*order} and order.index(new) < order.index(old)


_WRONG: Mapping[str, Callable[[Row, str, str], bool]] = {
    "another": lambda _, old, new: bool(old and new) and old != new,
    "back": _is_back,
    "far": _is_far,
    "far back": _is_far_back,
}


def refusals(there: Wanted, wanted: Wanted) -> Iterator[Refusal]:
    """Yield which steps AWS would refuse between a resource as it stands and as it is wanted."""
    for row in TABLE["steps"]:
        old, new = (values(each.inputs, row["at"]) for each in (there, wanted))
        if wanted.type != f"aws:{row['type']}" or not (old and new):
            continue
        if _WRONG[row["refused"]](row, str(old[0]), str(new[0])):
            message, at = row["says"].format(old[0], new[0]), row["at"].partition(".")[0]
            yield about(wanted, row["operation"], row["code"], message, at)


_PLACES = ("subnetId", "subnets.*", "subnetMappings.*.subnetId")


def deletion_refusals(leaving: Wanted, others: Iterable[Wanted]) -> Iterator[Refusal]:
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
            yield said("mapped-addresses", vpc, each.name, resource=leaving.name)
