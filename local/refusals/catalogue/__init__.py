"""The calls behind every resource type in use, a module per kind of service.

`calls` says how to read them; importing this package enters them.
"""

from local.refusals.calls import TYPES
from local.refusals.catalogue import (  # noqa: F401 - importing them enters their calls
    balancing,
    compute,
    events,
    identity,
    kubernetes,
    network,
    storage,
)

__all__ = ["TYPES"]
