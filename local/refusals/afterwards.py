"""Tells what AWS writes into a resource by itself, and what the next `up` would make of it.

The real provider reads a resource back. A key that AWS has added where the program set none is a
change, and under an input that cannot be updated it is a replacement, at every `up` from then on.
An addition that the provider takes for computed changes nothing and stands in no table.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from local.refusals.fields import values
from local.refusals.refusal import Refusal, Wanted

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


def refusals(wanted: Wanted) -> Iterator[Refusal]:
    """Yield what the next `up` would change although nobody has changed anything."""
    if as_answered(wanted.type, wanted.inputs) != dict(wanted.inputs):
        at, _ = ADDITIONS[wanted.type]
        message = f"AWS adds to {at}, so that {wanted.name} is replaced at every later `up`; set "
        yield Refusal("the next up", "Drift", f"{message}what AWS adds.", at)
