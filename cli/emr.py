"""Runs `stillwater report --on emr`: starts the job on EMR Serverless and fetches its tables.

The request is read from the schedule itself (infra.analytics.report_job), so what is deployed runs.
A run by hand writes its tables below the bucket; they are copied here, where the page is made.
Spark's own package brings no S3 client. Of an export only what its newest manifests name is copied,
of any other folder everything.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.ground import naming
from core.ground.errors import InvalidInput, StillwaterError, one_line
from handlers.adapters.calls import NO_ANSWER
from spark.files import version
from spark.ingest import manifest
from spark.jobs import chosen_months

if TYPE_CHECKING:
    from spark.tables import Store
    from spark.tag_keys import KafkaTags

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
    problem = f"The deployed job is not a job request ({error}); run `stillwater up` again."
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


SCHEMES = ("s3", "s3a")


def is_in_s3(address: str | None) -> bool:
    return address is not None and urlsplit(address).scheme in SCHEMES


class S3Files:
    """A bucket's objects as spark.files.Files has them."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3

    def below(self, folder: str, suffix: str) -> list[str]:
        return sorted(name for name in self._files_below(folder) if name.endswith(suffix))

    def versions(self, place: str) -> dict[str, str]:
        """Return what tells objects from others of their names, and their copies as well."""
        bucket, key = _parts(place)
        alone = [each for each in self._listed(bucket, key, most=1) if each["Key"] == key]
        found = {f"s3://{bucket}/{key}": each for each in alone} or self._files_below(place)
        return {
            address: version(each["Size"], _written_at_ns(each)) for address, each in found.items()
        }

    def is_file(self, address: str) -> bool:
        bucket, key = _parts(address)
        return any(each["Key"] == key for each in self._listed(bucket, key, most=1))

    def is_folder(self, address: str) -> bool:
        bucket, key = _parts(address)
        return any(True for _ in self._listed(bucket, f"{key}/", most=1))

    def read(self, address: str, limit: int | None = None) -> bytes:
        bucket, key = _parts(address)
        body = self._s3.get_object(Bucket=bucket, Key=key)["Body"]
        return bytes(body.read(limit))

    def copy(self, address: str, target: Path) -> None:
        bucket, key = _parts(address)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._s3.download_file(bucket, key, str(target))
        written_at_ns = _written_at_ns(self._s3.head_object(Bucket=bucket, Key=key))
        os.utime(target, ns=(written_at_ns, written_at_ns))

    def _files_below(self, folder: str) -> dict[str, Any]:
        bucket, key = _parts(folder)
        return {f"s3://{bucket}/{each['Key']}": each for each in self._listed(bucket, f"{key}/")}

    def _listed(self, bucket: str, prefix: str, most: int | None = None) -> Iterator[Any]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, PaginationConfig={"MaxItems": most}
        )
        return (each for page in pages for each in page.get("Contents", []))


def _written_at_ns(listed: Any) -> int:
    """Return an object's time in whole seconds, which is all that every answer of S3 has."""
    return int(listed["LastModified"].timestamp()) * 1_000_000_000


def copy_bill(s3: Any, address: str, folder: Path, months: Collection[str] = ()) -> Path:
    """Copy a bill, an export's newest deliveries or one file; return where it is now."""
    files, source = S3Files(s3), _plain(address)
    with reachable(address):
        if not files.is_folder(source):
            return _one_file(files, source, folder)
        export = manifest.pinned(files, source, months)
        for name in [*(month.manifest for month in export.months), *export.files]:
            _copy_into(files, source, name, folder)
    return folder


def copy_everything(s3: Any, address: str, folder: Path) -> Path:
    """Copy one file, or all that stands below a folder; return where it is now."""
    files, source = S3Files(s3), _plain(address)
    with reachable(address):
        if not files.is_folder(source):
            return _one_file(files, source, folder)
        for name in files.below(source, ""):
            _copy_into(files, source, name, folder)
    return folder


def months(s3: Any, address: str, month: str | None) -> list[str]:
    """Return the month asked for, or the newest, and, to compare it with, the one before.

    Of a bill that is one file none are named: it is read whole.
    """
    files = S3Files(s3)
    with reachable(address):
        is_export = files.is_folder(address)
        delivered = sorted(manifest.refreshes(files, _plain(address))[1]) if is_export else []
    if not delivered:
        return []
    asked = month or delivered[-1]
    try:
        before = f"{date.fromisoformat(f'{asked}-01') - timedelta(days=1):%Y-%m}"
    except ValueError:
        raise InvalidInput([f"--month {month} is not a month; write YYYY-MM."]) from None
    if asked not in delivered:
        problem = f"The export {address} has no delivery of {asked}, only {', '.join(delivered)}."
        raise InvalidInput([problem])
    return [each for each in (before, asked) if each in delivered]


def months_to_copy(
    s3: Any, address: str, month: str | None, store: Store, kafka: KafkaTags
) -> tuple[list[str] | None, list[str]]:
    """Return which of the months that a report needs are to be copied, None for a bill as a whole.

    Beside them are those that are final and in the tables unchanged: they are read from there.
    """
    needed = months(s3, address, month)
    with reachable(address):
        again, kept = chosen_months.months_of_files(S3Files(s3), _plain(address), store, kafka)
    if again is None or not needed:
        return again, kept
    return [each for each in needed if each in again], [each for each in kept if each in needed]


def existing_folder(s3: Any, folder: str | None) -> str | None:
    """Return a folder, or None for one that nothing is in yet."""
    if folder is None:
        return None
    with reachable(folder):
        return folder if S3Files(s3).is_folder(folder) else None


def _one_file(files: S3Files, source: str, folder: Path) -> Path:
    if not files.is_file(source):
        problem = f"There is nothing at {source}, neither an object nor anything below it."
        raise InvalidInput([problem])
    target = folder / source.rsplit("/", 1)[-1]
    files.copy(source, target)
    return target


def _copy_into(files: S3Files, source: str, name: str, folder: Path) -> None:
    target = below(folder, name.removeprefix(f"{source}/"))
    if target is not None:
        files.copy(name, target)


def _plain(address: str) -> str:
    bucket, key = _parts(address)
    return f"s3://{bucket}/{key}"


def _parts(address: str) -> tuple[str, str]:
    split = urlsplit(address)
    return split.netloc, split.path.strip("/")


@contextmanager
def reachable(address: str) -> Iterator[None]:
    """Turn what S3 refuses into a sentence."""
    try:
        yield
    except NO_ANSWER as error:
        raise StillwaterError(
            f"{address} could not be read: {one_line(error)}. You need s3:ListBucket on the bucket "
            f"and s3:GetObject below that address."
        ) from None
