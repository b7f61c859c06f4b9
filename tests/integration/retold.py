"""Variables of a function that is told otherwise, for tests that change what one knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.settings import codec
from core.settings.environment import SETTINGS


def retold(variables: Mapping[str, str], **fields: Any) -> dict[str, str]:
    """Return a function's variables with other fields of its settings."""
    told = json.loads(variables[SETTINGS])
    return {**variables, SETTINGS: codec.write({**told, **codec.document(fields)})}
