"""S3 in the twin: a bucket's policy as AWS reads it, conditions included.

moto judges a statement by action and resource alone, so that the usual one, which denies what comes
without TLS, would deny everything. The twin's transport stands for TLS, as its addresses stand for
a VPC: statements about requests without it apply to none.
"""

from __future__ import annotations

import json
from typing import Any

from moto.s3.models import FakeBucket

INSECURE = {"Bool": {"aws:SecureTransport": "false"}}


def install() -> None:
    """Leave out of a policy what cannot apply here."""
    moto_permission = FakeBucket.get_permission

    def get_permission(bucket: Any, action: str, resource: str) -> Any:
        stored = bucket.policy
        if stored is None:
            return moto_permission(bucket, action, resource)
        judged = _Judged(applicable(stored))
        return moto_permission(judged, action, resource)

    FakeBucket.get_permission = get_permission


class _Judged:
    """A bucket's policy, as moto's judge reads it."""

    def __init__(self, policy: bytes | None) -> None:
        self.policy = policy


def applicable(policy: bytes) -> bytes | None:
    """Return a policy without its statements about requests that lack TLS; None: nothing is left.

    >>> applicable(b'{"Statement": []}') is None
    True
    """
    document = json.loads(policy)
    statements = document.get("Statement", [])
    listed = statements if isinstance(statements, list) else [statements]
    left = [each for each in listed if each.get("Condition") != INSECURE]
    return json.dumps({**document, "Statement": left}).encode() if left else None
