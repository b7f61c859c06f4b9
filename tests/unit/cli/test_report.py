"""`stillwater report` and `prices check`: what they refuse, and what needs no JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli import report
from cli.main import app
from core.cluster.report_facts import report_facts
from core.ground.errors import InvalidInput
from core.settings import facts
from infra.spec import read

RUNNER = CliRunner()
EXAMPLE = Path(__file__).parents[3] / "stacks" / "config" / "clusters" / "example.yaml"


def test_the_price_book_says_how_old_its_rows_are() -> None:
    result = RUNNER.invoke(app, ["prices", "check", "--older-than-days", "30"])
    assert result.exit_code == 1
    assert "read on 2024-09-30" in result.output


def test_a_book_of_today_is_no_news() -> None:
    result = RUNNER.invoke(app, ["prices", "check", "--older-than-days", "36500"])
    assert result.exit_code == 0
    assert "None was read more than 36500 days ago." in result.output


def test_tables_that_are_none_are_named(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["prices", "check", "--tables", str(tmp_path)])
    assert isinstance(result.exception, InvalidInput)
    assert "holds no table usage" in str(result.exception)


def test_a_place_nobody_makes_reports_at_is_refused() -> None:
    result = RUNNER.invoke(app, ["report", "--on", "the-moon"])
    assert isinstance(result.exception, InvalidInput)
    assert "--on the-moon is no place a report is made" in str(result.exception)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        pytest.param([], "--environment ENVIRONMENT", id="nobody's-stacks"),
        pytest.param(
            ["--environment", "example", "--bill", "here.csv"],
            "EMR does not see here.csv",
            id="a-bill-of-this-machine",
        ),
    ],
)
def test_what_emr_cannot_do_is_said_before_anything_is_asked_of_aws(
    options: list[str], sentence: str
) -> None:
    result = RUNNER.invoke(app, ["report", "--on", "emr", *options])
    assert isinstance(result.exception, InvalidInput)
    assert sentence in str(result.exception)


def test_a_spec_becomes_the_facts_that_a_job_reads_back(tmp_path: Path) -> None:
    known = report.read_facts(EXAMPLE)
    assert known == report_facts(read(EXAMPLE))
    assert known is not None
    path = tmp_path / "facts.json"
    path.write_text(facts.to_json(known))
    assert report.read_facts(path) == known
    assert report.read_facts(None) is None
    assert known.retention_seconds == 168 * 3600
    assert known.pool_of("broker-a") == known.pool_of("broker")


def test_whether_consumers_may_stay_in_their_zone_is_a_fact_of_the_spec() -> None:
    spec = read(EXAMPLE)
    assert report_facts(spec).follower_fetching is True
    kafka = spec.kafka.model_copy(update={"config": {"replica.selector.class": "org.acme.Own"}})
    assert report_facts(spec.model_copy(update={"kafka": kafka})).follower_fetching is False
    written = json.loads(facts.to_json(report_facts(spec)))
    del written["follower_fetching"]
    assert facts.parse(json.dumps(written).encode(), "older").follower_fetching is None


def test_facts_of_another_version_say_how_to_write_them_again(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({"archive_name": "a"}))
    with pytest.raises(InvalidInput, match="write them again"):
        report.read_facts(path)
