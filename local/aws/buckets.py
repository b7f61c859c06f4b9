"""S3 in the twin: who may what of a bucket is judged by local.iam alone, conditions included.

moto judges a statement by action and resource alone, so that the usual one, which denies what comes
without TLS, would deny everything.
"""

from __future__ import annotations

from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket


def install() -> None:
    """Leave the judgement of bucket policies to the guard."""
    FakeBucket.get_permission = lambda *_: PermissionResult.NEUTRAL
