"""Published histories of real zone events, as Health sends them: AWS's structure, our own words.

Each update carries the latest text alone, as Health's page says. Times are those of the public
record; zone ids are those it names. 2025-10-20 was a region's and names no zone.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import Any


@dataclass(frozen=True)
class Update:
    """One word of an issue; `at` in ISO 8601."""

    at: str
    text: str
    status: str = "open"
    ended: bool = False


@dataclass(frozen=True)
class History:
    """One public event from its first word to its last."""

    name: str
    region: str
    service: str
    code: str
    updates: tuple[Update, ...]

    @property
    def arn(self) -> str:
        return f"arn:aws:health:{self.region}::event/{self.service}/{self.code}/{self.code}_0123"

    def bodies(self) -> tuple[str, ...]:
        return tuple(
            issue(
                update.text,
                at=update.at,
                number=number,
                region=self.region,
                arn=self.arn,
                service=self.service,
                eventTypeCode=self.code,
                statusCode=update.status,
                **({"endTime": rfc1123(update.at)} if update.ended else {}),
            )
            for number, update in enumerate(self.updates)
        )


def rfc1123(at: str) -> str:
    return format_datetime(datetime.fromisoformat(at), usegmt=True)


def issue(
    text: str,
    *,
    at: str = "2026-11-20T10:00:00+00:00",
    number: int = 0,
    region: str = "us-east-1",
    arn: str = "arn:aws:health:us-east-1::event/EC2/AWS_EC2_OPERATIONAL_ISSUE/one",
    entities: Sequence[Any] = (),
    **detail: Any,
) -> str:
    """Return one word about an issue as EventBridge delivers it."""
    return json.dumps(
        {
            "version": "0",
            "id": f"event-{arn[-20:]}-{number}-{at}",
            "detail-type": "AWS Health Event",
            "source": "aws.health",
            "account": "123456789012",
            "time": at,
            "region": region,
            "resources": [],
            "detail": {
                "eventArn": arn,
                "service": "EC2",
                "eventTypeCode": "AWS_EC2_OPERATIONAL_ISSUE",
                "eventTypeCategory": "issue",
                "eventScopeCode": "PUBLIC",
                "communicationId": f"{arn[-20:]}-{number}",
                "startTime": rfc1123(at),
                "lastUpdatedTime": rfc1123(at),
                "statusCode": "open",
                "eventRegion": region,
                "eventDescription": [{"language": "en_US", "latestDescription": text}],
                "affectedEntities": list(entities),
                "affectedAccount": "123456789012",
                "page": "1",
                "totalPages": "1",
                "backupEvent": "false",
                **detail,
            },
        }
    )


DECEMBER_2021 = History(
    "2021-12-22, a data center loses power",
    "us-east-1",
    "EC2",
    "AWS_EC2_OPERATIONAL_ISSUE",
    (
        Update(
            "2021-12-22T12:35:00+00:00",
            "Current severity level: Informational\n\n[04:35 AM PST] Launches fail and connections "
            "break for some instances in one Availability Zone of US-EAST-1; we look into it.",
        ),
        Update(
            "2021-12-22T13:01:00+00:00",
            "Current severity level: Degradation\n\n[05:01 AM PST] A data center within one "
            "Availability Zone (USE1-AZ4) has lost its power. The region's other zones are not "
            "affected.",
        ),
        Update(
            "2021-12-22T14:51:00+00:00",
            "Current severity level: Degradation\n\n[06:51 AM PST] Power is back in the affected "
            "data center of USE1-AZ4, and instances come back; a network problem slows it down.",
        ),
        Update(
            "2021-12-23T01:30:00+00:00",
            "Current severity level: Operating normally\n\n[RESOLVED] Loss of power\n\n[05:30 PM "
            "PST] Nearly all instances and volumes are back. What remains is on hardware that is "
            "lost, and its owners were told.",
            ended=True,
        ),
    ),
)
MARCH_2026 = History(
    "2026-03-01, a zone of the Middle East is lost for good",
    "me-central-1",
    "MULTIPLE_SERVICES",
    "AWS_MULTIPLE_SERVICES_OPERATIONAL_ISSUE",
    (
        Update(
            "2026-03-01T12:51:00+00:00",
            "Current severity level: Degradation\n\n[04:51 AM PST] We look into connectivity and "
            "power trouble in one Availability Zone (mec1-az2) of ME-CENTRAL-1.",
        ),
        Update(
            "2026-03-01T17:00:00+00:00",
            "Current severity level: Disruption\n\n[09:00 AM PST] mec1-az2 has no power. The "
            "other Availability Zones in the Region are operating normally.",
        ),
        Update(
            "2026-03-04T17:00:00+00:00",
            "Current severity level: Operating normally\n\n[RESOLVED] We speak to those who are "
            "still affected through their own events.",
            status="closed",
            ended=True,
        ),
    ),
)
OCTOBER_2020 = History(
    "2020-10, a zone of Frankfurt overheats",
    "eu-central-1",
    "EC2",
    "AWS_EC2_OPERATIONAL_ISSUE",
    (
        Update(
            "2020-10-21T10:00:00+00:00",
            "[03:00 AM PDT] Instances in a single Availability Zone (euc1-az1) do not answer, for "
            "the temperature there is too high.",
        ),
        Update("2020-10-21T12:00:00+00:00", "[05:00 AM PDT] We go on working on it."),
        Update(
            "2020-10-21T14:00:00+00:00",
            "[07:00 AM PDT] The issue has been resolved and the service is operating normally.",
            status="CLOSED",
        ),
    ),
)
OCTOBER_2025 = History(
    "2025-10-20, a region's DNS",
    "us-east-1",
    "MULTIPLE_SERVICES",
    "AWS_MULTIPLE_SERVICES_OPERATIONAL_ISSUE",
    (
        Update(
            "2025-10-20T07:11:00+00:00",
            "Current severity level: Disruption\n\n[12:11 AM PDT] Errors and latencies rise for "
            "many services in the US-EAST-1 Region; the resolution of one name is the likely "
            "cause.",
        ),
        Update(
            "2025-10-20T22:53:00+00:00",
            "Current severity level: Operating normally\n\n[RESOLVED] All services work again.",
            status="closed",
            ended=True,
        ),
    ),
)
HISTORIES = (OCTOBER_2020, DECEMBER_2021, OCTOBER_2025, MARCH_2026)
