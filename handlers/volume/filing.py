"""Copies what Prometheus remembers to the bucket the report's job reads, an hour a file.

A file is an answer of the range-query API, put together of as many questions as its samples take,
and is written once it is whole: dying before that leaves the hour to the next turn.
"""

from __future__ import annotations

import gzip
import io
import json
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

import boto3
from aws_lambda_powertools import Logger

from core.ground.errors import StillwaterError
from core.ground.naming import SAMPLES_FOLDER
from core.volumes.series import (
    HOUR_SECONDS,
    MOST_SAMPLES,
    WANTED,
    WantedMetric,
    Whose,
    count_expression,
    expression,
    hours_due,
    name_before_due,
    sample_key,
    slices,
)
from handlers.adapters.calls import CLIENT
from handlers.adapters.prometheus import Prometheus


class S3SampleFiles:
    """A folder of one S3 bucket."""

    def __init__(self, bucket: str, region: str) -> None:
        self._bucket = bucket
        self._s3 = boto3.client("s3", region_name=region, config=CLIENT)

    def names_after(self, name: str) -> Collection[str]:
        """Return the names of files that come after a name."""
        folder = f"{SAMPLES_FOLDER}/"
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=folder, StartAfter=f"{folder}{name}"
        )
        return {
            entry["Key"].removeprefix(folder)
            for page in pages
            for entry in page.get("Contents", ())
        }

    def store(self, name: str, content: bytes) -> None:
        """Write one file; the same name again replaces it."""
        self._s3.put_object(
            Bucket=self._bucket,
            Key=f"{SAMPLES_FOLDER}/{name}",
            Body=content,
            ContentType="application/gzip",
        )


logger = Logger(service="stillwater", child=True)
_HEAD = b'{"status":"success","data":{"resultType":"matrix","result":['
_TAIL = b"]}}"


class Turn(TypedDict):
    """What a turn did, in hours."""

    filed: int
    left: int


@dataclass(frozen=True)
class Filing:
    """Files the samples of one cluster."""

    prometheus: Prometheus
    files: S3SampleFiles
    whose: Whose

    def turn(self, now: float, *, until: float) -> Turn:
        """File the hours that are due, as far as the time goes, by the monotonic clock.

        Raises StillwaterError where Prometheus does not answer: what was filed stays, and the next
        turn goes on from there.
        """
        due = list(hours_due(now, self.files.names_after(name_before_due(now))))
        for done, begin in enumerate(due):
            if time.monotonic() > until:
                logger.warning("Samples are left for the next turn.", hours=len(due) - done)
                return Turn(filed=done, left=len(due) - done)
            self.files.store(sample_key(begin), self._content(begin))
        return Turn(filed=len(due), left=0)

    def _content(self, begin: float) -> bytes:
        packed = io.BytesIO()
        # The same samples are the same bytes: a file that is written twice is no new version.
        with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as out:
            self._fill(out, begin)
        return packed.getvalue()

    def _fill(self, out: gzip.GzipFile, begin: float) -> None:
        """Write an answer, a series at a time: an hour of all of them may be large."""
        out.write(_HEAD)
        between = b""
        for wanted in WANTED:
            for series in self._series(wanted, begin):
                out.write(between + json.dumps(series).encode())
                between = b","
        out.write(_TAIL)

    def _series(self, wanted: WantedMetric, begin: float) -> Iterator[dict[str, Any]]:
        asked = expression(wanted, self.whose)
        count = self._count(wanted, asked, begin + HOUR_SECONDS)
        for start, end in slices(wanted, begin, count):
            for each in self.prometheus.query_range(asked, start, end, wanted.step_seconds):
                yield {
                    "metric": {**each.labels, "__name__": wanted.metric},
                    "values": [[at, f"{value:.17g}"] for at, value in each.points.items()],
                }

    def _count(self, wanted: WantedMetric, asked: str, end: float) -> int:
        """Return how many series there are; more than fit into an answer raise StillwaterError."""
        counted = self.prometheus.instant(count_expression(asked), end)
        number = int(sum(value for each in counted for value in each.points.values()))
        if number > MOST_SAMPLES:
            raise StillwaterError(
                f"{wanted.metric} has {number:,} series, more than the {MOST_SAMPLES:,} "
                f"that fit into one answer; choose this cluster's by metrics.prometheus.labels."
            )
        return number
