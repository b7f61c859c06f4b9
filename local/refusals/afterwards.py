"""Tells what AWS writes into a resource by itself, and what the next `up` would make of it.

The real provider reads a resource back. A key that AWS has added where the program set none is a
change, and under an input that cannot be updated it is a replacement, at every `up` from then on.
An addition that the provider takes for computed changes nothing and stands in no table.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.refusals.refusal import Refusal, Wanted

BILLING_VIEW = "BILLING_VIEW_ARN"
ACCOUNT = "123456789012"
Inputs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Addition:
    """One thing that AWS adds: the input it shows up in, whether that replaces, who found out."""

    at: str
    replaces: bool
    source: str
    # The inputs as they read after AWS was done.
    answer: Callable[[Inputs, str], dict[str, Any]]


def _billing_view(inputs: Inputs, account: str) -> dict[str, Any]:
    answered = copy.deepcopy(dict(inputs))
    for query in answered["export"]["dataQueries"]:
        for settings in (query.get("tableConfigurations") or {}).values():
            settings.setdefault(BILLING_VIEW, f"arn:aws:billing::{account}:billingview/primary")
    return answered


ADDITIONS: Mapping[str, tuple[Addition, ...]] = {
    "aws:bcmdata/export:Export": (
        Addition(
            at="export",
            replaces=True,
            source="https://github.com/hashicorp/terraform-provider-aws/issues/46402",
            answer=_billing_view,
        ),
    ),
}


def as_answered(type_: str, inputs: Inputs, account: str = ACCOUNT) -> dict[str, Any]:
    """Return a resource's inputs as AWS would give them back."""
    found = dict(inputs)
    for addition in ADDITIONS.get(type_, ()):
        found = addition.answer(found, account)
    return found


def replacing(type_: str) -> frozenset[str]:
    """Return the inputs of a type that cannot be updated where AWS adds to them."""
    return frozenset(each.at for each in ADDITIONS.get(type_, ()) if each.replaces)


def refusals(wanted: Wanted) -> Iterator[Refusal]:
    """Yield what the next `up` would change although nobody has changed anything."""
    for addition in ADDITIONS.get(wanted.type, ()):
        if addition.answer(wanted.inputs, ACCOUNT) != dict(wanted.inputs):
            what = "replaced" if addition.replaces else "changed"
            message = (
                f"AWS adds to {addition.at}, so that {wanted.name} is {what} at every later `up`; "
                f"set what AWS adds."
            )
            yield Refusal("the next up", "Drift", message, addition.at)
