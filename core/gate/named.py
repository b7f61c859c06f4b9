"""Names Kafka's own pods to the API server, which asks about an eviction by its pod's name alone.

Of a Kafka that exists pools come and go, so no stack can write them down: the gate narrows its own
webhook to those that Strimzi's pod sets name (handlers.eviction.certificate).
"""

from __future__ import annotations

from collections.abc import Iterable

# The webhook that is asked about evictions, and the condition in it that the gate writes.
EVICTIONS, KNOWN = "evictions.stillwater.dev", "of-its-pools"


def condition(pod_names: Iterable[str]) -> str | None:
    """Return what is true of the names of a Kafka's pods, present and next; None: none is known.

    >>> condition(["orders-a-7", "orders-b-8", "orders-b-9"])
    "request.name.matches('^(orders-a|orders-b)-[0-9]+$')"
    """
    pools = sorted({name.rpartition("-")[0].replace(".", "[.]") for name in pod_names})
    return f"request.name.matches('^({'|'.join(pools)})-[0-9]+$')" if pools else None
