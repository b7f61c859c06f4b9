"""Names the regions that there are, as botocore knows them."""

from __future__ import annotations

import functools

import botocore.session


@functools.cache
def regions() -> frozenset[str]:
    """Return the regions of every partition.

    >>> "eu-central-1" in regions(), "mars-1" in regions()
    (True, False)
    """
    session = botocore.session.get_session()
    partitions = session.get_available_partitions()
    return frozenset(r for p in partitions for r in session.get_available_regions("s3", p))
