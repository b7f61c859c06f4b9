"""Tells who is who in the twin: the first user, the secret behind an access key, a function's role.

moto checks no signature. The STS proxy in front of aws-iam-authenticator does, and asks here for
the secret and the ARN that belong to an access key id.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """An access key and whose it is."""

    access_key_id: str
    secret: str
    arn: str
    account: str
    user_id: str
    session_token: str | None = None

    def as_json(self) -> dict[str, str | None]:
        """Return what whoever has the access key's id asks for: the rest."""
        return {key: text for key, text in asdict(self).items() if key != "access_key_id"}


def create_admin() -> Credentials:
    """Create the user whose key every client of the twin starts with."""
    with IDENTITY:
        iam = iam_backends[ACCOUNT][PARTITION]
        user = iam.create_user(REGION, ADMIN_USER)
        iam.put_user_policy(ADMIN_USER, "everything", ADMIN_POLICY)
        key = iam.create_access_key(ADMIN_USER)
    return _of_user(user, key)


def write(credentials: Credentials, path: Path) -> None:
    """Write an access key to a file only its owner can read, whole or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as sink:
        json.dump(
            {
                "access_key_id": credentials.access_key_id,
                "secret_access_key": credentials.secret,
            },
            sink,
        )
    unfinished.replace(path)


def assume(role_arn: str, session_name: str) -> Credentials:
    """Return temporary credentials of a role, as a Lambda function gets those of its own."""
    with IDENTITY:
        sts = sts_backends[ACCOUNT][PARTITION]
        role = sts.assume_role(
            region_name=REGION,
            role_session_name=session_name[:64],
            role_arn=role_arn,
            policy="",
            duration=3600,
            external_id="",
        )
    return _of_role(role)


def look_up(access_key_id: str) -> Credentials | None:
    """Return the credentials behind an access key id, of a user or of an assumed role."""
    with IDENTITY:
        role = sts_backends[ACCOUNT][PARTITION].get_assumed_role_from_access_key(access_key_id)
        if role is not None:
            return _of_role(role)
        for user in iam_backends[ACCOUNT][PARTITION].users.values():
            for key in user.access_keys:
                if key.access_key_id == access_key_id and key.status == "Active":
                    return _of_user(user, key)
    return None


def _of_user(user: Any, key: Any) -> Credentials:
    return Credentials(
        access_key_id=key.access_key_id,
        secret=key.secret_access_key,
        arn=user.arn,
        account=user.account_id,
        user_id=user.id,
    )


def _of_role(role: Any) -> Credentials:
    return Credentials(
        access_key_id=role.access_key_id,
        secret=role.secret_access_key,
        arn=role.arn,
        account=role.account_id,
        user_id=role.user_id,
        session_token=role.session_token,
    )
