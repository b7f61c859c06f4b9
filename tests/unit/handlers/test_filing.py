"""An hour of Prometheus's samples becomes one file in the folder that the report's job reads."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from moto import mock_aws

from core.ground.errors import StillwaterError
from core.volumes.series import HOUR_SECONDS, WANTED, Whose, sample_key
from handlers.adapters.prometheus import Prometheus
from handlers.volume.filing import Filing, S3SampleFiles

NOON = 1_800_000_000.0 - 1_800_000_000.0 % HOUR_SECONDS
NOW = NOON + 700
BUCKET = "test-orders-billing"
NEVER = float("inf")
COUNTER = "kafka_server_brokertopicmetrics_bytesinpersec_total"


class Remembers:
    """A Prometheus that has some series of one counter, with a sample at each step."""

    def __init__(self, series: int = 2, *, silent_after: int | None = None) -> None:
        self._series, self._left = series, silent_after
        self.asked = 0

    def get(self, path: str, seconds: float) -> str:
        self.asked += 1
        if self._left is not None and self.asked > self._left:
            raise StillwaterError("Prometheus did not answer.")
        told = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        known = COUNTER in told["query"]
        if "count(" in told["query"]:
            count = [{"metric": {}, "value": [0, str(self._series)]}] if known else []
            return answer("vector", count)
        begin, end, step = (float(told[name]) for name in ("start", "end", "step"))
        moments = [begin + n * step for n in range(round((end - begin) / step) + 1)]
        return answer(
            "matrix",
            [
                {
                    "metric": {"__name__": COUNTER, "pod": f"orders-broker-a-{n}"},
                    "values": [[at, "123456789012345678"] for at in moments],
                }
                for n in range(self._series)
            ],
        )


def answer(kind: str, result: list[Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}})


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield client


def filing(prometheus: Remembers) -> Filing:
    files = S3SampleFiles(BUCKET, "us-east-1")
    return Filing(Prometheus(prometheus), files, Whose("orders", "kafka", {}))


def filed(s3: Any) -> list[str]:
    return [each["Key"] for each in s3.list_objects_v2(Bucket=BUCKET).get("Contents", ())]


def content(s3: Any, key: str) -> Any:
    return json.loads(gzip.decompress(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()))


def test_each_hour_of_the_last_day_is_filed_once_under_its_own_name(s3: Any) -> None:
    assert filing(Remembers()).turn(NOW, until=NEVER) == {"filed": 24, "left": 0}
    assert len(filed(s3)) == 24
    assert filed(s3)[-1] == f"metrics/{sample_key(NOON - HOUR_SECONDS)}"
    assert filing(Remembers()).turn(NOW, until=NEVER) == {"filed": 0, "left": 0}


def test_a_file_is_an_answer_with_every_sample_and_its_name(s3: Any) -> None:
    filing(Remembers()).turn(NOW, until=NEVER)
    read = content(s3, filed(s3)[0])
    first, second = read["data"]["result"]
    assert (read["status"], read["data"]["resultType"]) == ("success", "matrix")
    assert first["metric"] == {"__name__": COUNTER, "pod": "orders-broker-a-0"}
    assert len(first["values"]) == len(second["values"]) == 240
    assert float(first["values"][0][1]) == float("123456789012345678")


def test_an_hour_that_breaks_off_is_no_file_and_the_next_turn_makes_it(s3: Any) -> None:
    questions = len(WANTED) + 1
    with pytest.raises(StillwaterError, match="did not answer"):
        filing(Remembers(silent_after=2 * questions + 3)).turn(NOW, until=NEVER)
    assert len(filed(s3)) == 2
    assert filing(Remembers()).turn(NOW, until=NEVER)["filed"] == 22


def test_a_turn_ends_before_its_function_does_and_says_what_is_left(s3: Any) -> None:
    assert filing(Remembers()).turn(NOW, until=time.monotonic() - 1) == {"filed": 0, "left": 24}


def test_more_series_than_fit_into_an_answer_are_named_with_what_chooses_among_them(
    s3: Any,
) -> None:
    with pytest.raises(StillwaterError, match=r"200,001 series.*metrics\.prometheus\.labels"):
        filing(Remembers(series=200_001)).turn(NOW, until=NEVER)
    assert filed(s3) == []


def test_what_somebody_else_put_there_stays(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="metrics/ours.json", Body=b"{}")
    assert filing(Remembers()).turn(NOW, until=NEVER)["filed"] == 24
    assert s3.get_object(Bucket=BUCKET, Key="metrics/ours.json")["Body"].read() == b"{}"
