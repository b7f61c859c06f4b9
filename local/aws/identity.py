"""The twin's first user, and sessions of a function's role."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

from local.environment import ACCOUNT, ADMIN_USER, PARTITION, REGION
from local.locks import IDENTITY

ADMIN_POLICY = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
    }
)


def create_admin() -> Any:
    """Create the user whose key every client of the twin starts with; return moto's key."""
    with IDENTITY:
        iam = iam_backends[ACCOUNT][PARTITION]
        iam.create_user(REGION, ADMIN_USER)
        iam.put_user_policy(ADMIN_USER, "everything", ADMIN_POLICY)
        return iam.create_access_key(ADMIN_USER)


def write(key: Any, path: Path) -> None:
    """Write an access key to a file only its owner can read, whole or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as sink:
        shown = {"access_key_id": key.access_key_id, "secret_access_key": key.secret_access_key}
        json.dump(shown, sink)
    unfinished.replace(path)


def assume(role_arn: str, session_name: str) -> Any:
    """Return moto's session of a role, as a Lambda function gets one of its own."""
    with IDENTITY:
        sts = sts_backends[ACCOUNT][PARTITION]
        return sts.assume_role(
            region_name=REGION,
            role_session_name=session_name[:64],
            role_arn=role_arn,
            policy="",
            duration=3600,
            external_id="",
        )
