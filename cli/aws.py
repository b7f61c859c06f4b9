"""Opens sessions with AWS under the caller's identity; without one, every command says the same."""

from __future__ import annotations

import boto3
from botocore.exceptions import BotoCoreError

from core.errors import StillwaterError

REMEDY = (
    "log in (`aws sso login`), name a profile in AWS_PROFILE, or set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY."
)
NO_CREDENTIALS = f"There are no AWS credentials here: {REMEDY}"


def session(profile: str | None = None, region: str | None = None) -> boto3.Session:
    """Return a session that has credentials, refreshed where they had run out.

    Raises StillwaterError with the remedy where it has none.
    """
    try:
        opened = boto3.Session(profile_name=profile, region_name=region)
        credentials = opened.get_credentials()
        if credentials is not None:
            credentials.get_frozen_credentials()
    except BotoCoreError as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise StillwaterError(f"The AWS credentials cannot be used ({said}): {REMEDY}") from None
    if credentials is None:
        raise StillwaterError(NO_CREDENTIALS)
    return opened
