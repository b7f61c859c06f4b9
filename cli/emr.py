"""`stillwater report --on emr`: start the job on EMR Serverless, follow it, fetch its tables.

The job is the one the schedule starts (infra.analytics.report_job), asked of the schedule itself:
what is deployed is what runs, and nobody needs the stacks' state. A run by hand writes its tables
as Parquet below the bucket, because they are read on this machine, where the page is made.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from core.ground import naming
from core.ground.errors import InvalidInput, StillwaterError

POLL_SECONDS = 5.0
DONE, FAILED = "SUCCESS", ("FAILED", "CANCELLED", "CANCELLING")
# What the job makes (spark.entry); a run's take the place of those of the run before.
TABLES = (
    *("usage", "cost", "transfer", "quarantine", "deliveries"),
    *("unit", "anomalies", "resync", "storage", "economics", "node_shares"),
    "tags_found",
)
# The schedule's job leaves out what its tables hold; a run's own tables hold nothing yet.
UNSETTLED = "--unsettled"
# Each start of the schedule has its own; a run by hand brings one.
ONCE = "ClientToken"


@dataclass(frozen=True, slots=True)
class JobRun:
    """One started job: where it runs, and where its tables will be."""

    application_id: str
    run_id: str
    tables: str
    logs: str


def scheduled_job(scheduler: Any, prefix: str) -> str:
    """Return the job that an environment's schedule starts; one without raises InvalidInput."""
    name = naming.reports(prefix)
    try:
        found = scheduler.get_schedule(Name=name)
    except scheduler.exceptions.ResourceNotFoundException:
        problem = (
            f"The account has no schedule {name}, which knows the job; `stillwater up` of the "
            f"environment makes it, with its analytics layer."
        )
        raise InvalidInput([problem]) from None
    return str(found["Target"]["Input"])


def job_argument(job: str, name: str) -> str | None:
    """Return what a job is told under a name (`bill`, `history`), or None where it is not."""
    try:
        given = json.loads(job)["JobDriver"]["SparkSubmit"]["EntryPointArguments"]
        return str(given[given.index(f"--{name}") + 1]) if f"--{name}" in given else None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise _no_request(error) from None


def submit(
    emr: Any,
    job: str,
    *,
    token: str,
    months: Sequence[str] = (),
    instead: Mapping[str, str | None] | None = None,
) -> JobRun:
    """Start the deployed job with tables of its own; the same token twice is one run.

    `instead` names what is read instead of what the deployed job reads, or beside it: a bill,
    metrics, a history. What is None there stays as it is.
    """
    try:
        document = json.loads(job)
        document.pop(ONCE, None)
        request = _camel(document)
        submitted = request["jobDriver"]["sparkSubmit"]
        given = list(submitted["entryPointArguments"])
        bucket = urlsplit(submitted["entryPoint"]).netloc
        where = given.index("--namespace")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _no_request(error) from None
    tables = f"s3://{bucket}/{naming.REPORT_RUNS}/{token}"
    given[where : where + 2] = ["--tables", tables]
    for name, value in (instead or {}).items():
        given = _told_instead(given, f"--{name}", value)
    given = [word for word in given if word != UNSETTLED]
    submitted["entryPointArguments"] = [*given, *(a for m in months for a in ("--month", m))]
    answer = emr.start_job_run(clientToken=token, **request)
    monitoring = request["configurationOverrides"]["monitoringConfiguration"]
    return JobRun(
        application_id=str(answer["applicationId"]),
        run_id=str(answer["jobRunId"]),
        tables=tables,
        logs=monitoring["s3MonitoringConfiguration"]["logUri"],
    )


def _told_instead(given: list[str], name: str, value: str | None) -> list[str]:
    if value is None:
        return given
    if name not in given:
        return [*given, name, value]
    at = given.index(name)
    return [*given[:at], name, value, *given[at + 2 :]]


def _no_request(error: Exception) -> InvalidInput:
    problem = f"The deployed job is no job request ({error}); run `stillwater up` again."
    return InvalidInput([problem])


def follow(
    emr: Any,
    run: JobRun,
    on_state: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until a run succeeded, telling each new state; one that failed raises StillwaterError.

    EMR itself ends a run after the job's own time limit, so the wait has an end.
    """
    told = ""
    while True:
        found = emr.get_job_run(applicationId=run.application_id, jobRunId=run.run_id)["jobRun"]
        state = str(found["state"])
        if state != told:
            on_state(state)
            told = state
        if state == DONE:
            return
        if state in FAILED:
            why = found.get("stateDetails") or "EMR gave no reason"
            raise StillwaterError(
                f"The job run {run.run_id} ended as {state}: {why}. Its logs are below "
                f"{run.logs}applications/{run.application_id}/jobs/{run.run_id}/."
            )
        sleep(POLL_SECONDS)


def fetch(s3: Any, run: JobRun, folder: Path) -> Path:
    """Make a folder of this machine hold a run's tables, in place of those of the run before."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetched-", dir=folder) as staging:
        _copy(s3, run, Path(staging))
        # Only now: a copy that broke off leaves the tables as they were.
        for name in TABLES:
            shutil.rmtree(folder / name, ignore_errors=True)
            if (Path(staging) / name).is_dir():
                (Path(staging) / name).rename(folder / name)
    return folder


def _copy(s3: Any, run: JobRun, folder: Path) -> None:
    address = urlsplit(run.tables)
    prefix = f"{address.path.lstrip('/')}/"
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=address.netloc, Prefix=prefix)
    copied = 0
    for entry in (entry for page in pages for entry in page.get("Contents", [])):
        target = below(folder, entry["Key"].removeprefix(prefix))
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            s3.download_file(address.netloc, entry["Key"], str(target))
            copied += 1
    if not copied:
        raise StillwaterError(
            f"The job run {run.run_id} succeeded, but {run.tables} holds no tables; look into its "
            f"logs below {run.logs}."
        )


def below(folder: Path, name: str) -> Path | None:
    """Return where an object belongs, or None for a folder's marker or one that leads elsewhere."""
    if not name or name.endswith("/") or ".." in name.split("/"):
        return None
    return folder / name


def _camel(request: Any) -> Any:
    """Return the scheduler's spelling of a request as boto3 spells it; tags stay as they are."""
    if isinstance(request, list):
        return [_camel(entry) for entry in request]
    if not isinstance(request, dict):
        return request
    return {
        f"{key[:1].lower()}{key[1:]}": value if key == "Tags" else _camel(value)
        for key, value in request.items()
    }
