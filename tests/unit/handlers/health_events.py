"""What AWS Health says of one instance: a retirement or a reboot, opened, moved and closed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import format_datetime

from tests.explorer.world import FIRST, START

DAY = 86_400.0
RETIREMENT = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"
REBOOT = "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"


def health_event(
    code: str = RETIREMENT,
    *,
    due: float = START + 14 * DAY,
    status: str = "open",
    said_at: float = START,
    number: int = 1,
) -> str:
    """Return a Health event about one instance, as AWS sends it."""

    def written(at: float) -> str:
        return format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True)

    return json.dumps(
        {
            "version": "0",
            "id": f"health-{code}-{number}-{status}-{said_at}",
            "detail-type": "AWS Health Event",
            "source": "aws.health",
            "account": "123456789012",
            "time": datetime.fromtimestamp(said_at, UTC).isoformat(),
            "region": "us-east-1",
            "detail": {
                "eventArn": f"arn:aws:health:us-east-1::event/EC2/{code}/{number}",
                "service": "EC2",
                "eventTypeCode": code,
                "eventTypeCategory": "scheduledChange",
                "communicationId": f"{code}-{number}-{status}-{said_at}",
                "startTime": written(due),
                "lastUpdatedTime": written(said_at),
                "statusCode": status,
                "affectedEntities": [{"entityValue": FIRST[10]}],
            },
        }
    )
