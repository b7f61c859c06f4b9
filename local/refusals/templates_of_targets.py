"""Checks that what a rule's target is sent is JSON once its placeholders are filled."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

_PLACEHOLDER = re.compile(r"<[^<>\s]+>")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@limit(
    "cloudwatch/eventTarget:EventTarget",
    source="https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html",
)
def template_of_a_target(wanted: Wanted) -> Iterator[Refusal]:
    """A JSON value, or a text on each line."""
    template = (wanted.inputs.get("inputTransformer") or {}).get("inputTemplate")
    if template is None or _is_json(str(template)):
        return
    lines = [each for each in str(template).splitlines() if each.strip()]
    if not lines or not all(_is_json(each) for each in lines):
        named = wanted.inputs.get("targetId") or "terraform"
        message = f"Invalid InputTemplate for target {named}: it is no JSON."
        yield Refusal("PutTargets", "ValidationException", message, "inputTransformer")


def _is_json(template: str) -> bool:
    # Inside a text a placeholder is text; elsewhere it is a value of its own.
    texts = _TEXT.sub(lambda found: _PLACEHOLDER.sub("x", found[0]), template)
    try:
        json.loads(_PLACEHOLDER.sub("0", texts))
    except ValueError:
        return False
    return True
