"""Makes `stillwater report`: from a bill, and what is known beside it, to a page, text or message.

Runs on this machine unless told otherwise: RUNNERS holds every place a report is made, each with
one call from what was asked to where it was written.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cli import aws, stack_settings
from cli.aws import out_of_reach
from cli.target import Cluster
from cli.terminal import say
from core.cluster.report_facts import report_facts
from core.ground.errors import InvalidInput, StillwaterError
from core.settings.facts import Facts
from core.settings.facts import load as load_facts
from handlers.adapters.calls import NO_ANSWER

if TYPE_CHECKING:
    from spark.jobs.every import Inputs
    from spark.report.document import Document
    from spark.tables import Store

NOT_READ = "Final, unchanged since they were read, and not read again: {}."


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What the command line asked for."""

    bill: str | None
    month: str | None
    format: str
    spec: Path | None
    metrics: str | None
    history: str | None
    prices: Path | None
    tables: Path
    output: Path
    today: date | None = None
    # Whose stacks: for the job on EMR, the AWS profile, and the spec where none is named.
    environment: str | None = None
    # The tags that mean Kafka and its pools; ours where none is named.
    cluster_tag: str | None = None
    pool_tag: str | None = None
    # Every job has made the tables already: the report is told of them.
    finished: bool = False


def make_locally(asked: ReportOptions, console: Console) -> Document:
    """Make the report in this process; what is in S3 is copied here first."""
    _made_folders(asked)
    with tempfile.TemporaryDirectory(prefix=".copied-", dir=asked.output) as scratch:
        return _make_document(
            _copied_options(asked, Path(scratch), console), console, Path(scratch)
        )


def _make_document(asked: ReportOptions, console: Console, scratch: Path | None = None) -> Document:
    """Make the report; a bill in S3 is copied into `scratch`, as far as it is to be read."""
    facts = _facts(asked)
    book = None if facts is None else stack_settings.prices(facts.region, asked.prices)
    with console.status("Stillwater makes the report"):
        from spark import tag_keys  # noqa: PLC0415 - starts the imports of the jobs
        from spark.jobs import every  # noqa: PLC0415 - the same
        from spark.report import formats  # noqa: PLC0415
        from spark.tables import ParquetStore  # noqa: PLC0415 - the same

        inputs = every.Inputs(
            bill=asked.bill,
            month=asked.month,
            metrics=asked.metrics,
            history=asked.history,
            facts=facts,
            book=book,
            today=asked.today,
            kafka=tag_keys.parse_tags(asked.cluster_tag, asked.pool_tag),
        )
        store = ParquetStore(str(asked.tables.resolve()))
        if scratch is not None and (asked.bill or "").startswith("s3"):
            inputs = _copied_inputs(store, inputs, asked, scratch)

        make = every.told_month if asked.finished else every.run
        made = make(store, inputs)
        store.tidy(datetime.now(UTC))
    kept = [NOT_READ.format(", ".join(made.kept))] if made.kept else []
    for line in [*formats.summary(made.document), *kept]:
        say(console, line)
    return made.document


def _copied_inputs(store: Store, inputs: Inputs, asked: ReportOptions, scratch: Path) -> Inputs:
    """Return the inputs with a copy of a bill in S3; of months that tables hold none is made."""
    from cli import emr  # noqa: PLC0415 - a local report needs no AWS
    from spark.jobs import every  # noqa: PLC0415 - starts Spark's imports

    if asked.bill is None or not emr.is_in_s3(asked.bill):
        return inputs
    s3 = _s3(asked)
    kafka = every.kafka_of(inputs, inputs.rotations())
    months, kept = emr.months_to_copy(s3, asked.bill, asked.month, store, kafka)
    if months == []:
        return replace(inputs, bill=None, kept=kept)
    copy = emr.copy_bill(s3, asked.bill, scratch / "bill", months or ())
    return replace(inputs, bill=str(copy), kept=kept)


def make_on_emr(asked: ReportOptions, console: Console) -> Document:
    """Make the tables on EMR Serverless, as the schedule does, and the report of them here.

    Facts, samples and history are those that the schedule's job reads; others that are in S3 are
    the job's to read in their place.
    """
    from cli import emr  # noqa: PLC0415 - boto3, which a report of a file here never needs

    if asked.environment is None:
        raise InvalidInput(["Name whose job is to run: --on emr --environment ENV."])
    if asked.bill is not None and not emr.is_in_s3(asked.bill):
        problem = (
            f"EMR does not see {asked.bill}; name a bill below s3://, or none, for the export "
            f"of the environment's own stacks."
        )
        raise InvalidInput([problem])
    _made_folders(asked)
    cluster = Cluster.named(asked.environment)
    try:
        job = emr.scheduled_job(cluster.client("scheduler"), cluster.spec.prefix)
        s3 = cluster.client("s3")
        client = cluster.client("emr-serverless")
        bill = asked.bill or emr.job_argument(job, "bill")
        months = emr.months(s3, bill, asked.month) if bill else ()
        asked = replace(
            asked,
            metrics=asked.metrics or emr.existing_folder(s3, emr.job_argument(job, "metrics")),
            history=asked.history or emr.existing_folder(s3, emr.job_argument(job, "history")),
        )
        shared = {
            **{
                name: value
                for name in ("bill", "metrics", "history")
                if emr.is_in_s3(value := getattr(asked, name))
            },
            "cluster-tag": asked.cluster_tag,
            "pool-tag": asked.pool_tag,
        }
        run = emr.submit(client, job, token=uuid.uuid4().hex, months=months, instead=shared)
        say(console, f"Job run {run.run_id} on {run.application_id}")
        with _goes_on(run.application_id, run.run_id, console):
            emr.follow(client, run, lambda state: say(console, f"  {state}"))
        emr.fetch(s3, run, asked.tables)
    except NO_ANSWER as error:
        raise StillwaterError(out_of_reach("The job on EMR could not be run.", error)) from None
    # What the job read stays where it is: its tables hold what they say.
    asked = replace(asked, bill=None, finished=True)
    return _make_document(asked, console)


RUNNERS: Mapping[str, Callable[[ReportOptions, Console], Document]] = {
    "local": make_locally,
    "emr": make_on_emr,
}


@contextmanager
def _goes_on(application_id: str, run_id: str, console: Console) -> Iterator[None]:
    """Say at an interruption what it does not end."""
    try:
        yield
    except KeyboardInterrupt:
        say(
            console,
            f"The job goes on at AWS and is billed; `aws emr-serverless cancel-job-run "
            f"--application-id {application_id} --job-run-id {run_id}` ends it.",
        )
        raise


def make(asked: ReportOptions, on: str, console: Console) -> None:
    """Make the report where it was asked for, and say where it is."""
    from spark.report import formats  # noqa: PLC0415 - imports matplotlib

    document = _run(asked, on, console)
    kind = formats.Format(asked.format)
    path = asked.output / kind.file_name
    path.write_text(formats.write(document, kind), encoding="utf-8")
    say(console, f"The report: {path}")


def as_json(asked: ReportOptions, on: str, console: Console) -> str:
    """Make the report and return it as JSON; what is said meanwhile goes to `console`."""
    from spark.report import formats  # noqa: PLC0415 - the same

    return formats.as_json(_run(asked, on, console))


def _run(asked: ReportOptions, on: str, console: Console) -> Document:
    if on not in RUNNERS:
        raise InvalidInput([f"--on {on} is not a place for a report: {', '.join(RUNNERS)}."])
    return RUNNERS[on](asked, console)


def _copied_options(asked: ReportOptions, scratch: Path, console: Console) -> ReportOptions:
    """Return what was asked with copies in the place of what stands beside the bill in S3."""
    from cli import emr  # noqa: PLC0415 - the same

    if asked.bill is not None and emr.is_in_s3(asked.bill):
        # A bill that cannot be had is refused before anything is copied.
        emr.months(_s3(asked), asked.bill, asked.month)
    names = [n for n in ("metrics", "history") if emr.is_in_s3(getattr(asked, n))]
    copies: dict[str, Any] = {}
    for name in names:
        with console.status(f"Copying --{name}"):
            copy = emr.copy_everything(_s3(asked), getattr(asked, name), scratch / name)
            copies[name] = str(copy)
    return replace(asked, **copies)


def _s3(asked: ReportOptions) -> Any:
    if asked.environment:
        return Cluster.named(asked.environment).client("s3")
    return aws.session().client("s3")


def _facts(asked: ReportOptions) -> Facts | None:
    if asked.spec is None and asked.environment is not None:
        return report_facts(Cluster.named(asked.environment).own_spec)
    return read_facts(asked.spec)


def read_facts(path: Path | None) -> Facts | None:
    """Return a cluster's facts from its ClusterSpec, or from the facts another run wrote."""
    if path is None:
        return None
    if path.suffix == ".json" and '"archive_name"' in _text(path):
        return load_facts(path)
    from infra.spec import read  # noqa: PLC0415 - reads pydantic

    return report_facts(read(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _made_folders(asked: ReportOptions) -> None:
    for folder in (asked.output, asked.tables):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = f"The report cannot be written to {folder}: {error.strerror}."
            raise InvalidInput([problem]) from None
