"""The calls behind every resource type in use: calls.toml, and what rebuilds inputs for them.

`calls` says how to read them; importing this package enters them.
"""

import tomllib
from pathlib import Path

from local.refusals.calls import TYPES, enter
from local.refusals.catalogue import (  # noqa: F401 - importing them enters their builders
    balancing,
    compute,
    events,
    storage,
)

__all__ = ["TYPES"]

for _token, _told in tomllib.loads(Path(__file__).with_name("calls.toml").read_text()).items():
    enter(_token, _told)
