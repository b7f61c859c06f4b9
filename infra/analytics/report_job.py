"""Builds the job that turns bills into tables: its role, its code, and the schedule that starts it.

`stillwater report --on emr` reads the request back from the schedule, whose spelling has
StartJobRun's keys with capitals. The code is a zip of spark/ and core/ without cluster/, which
needs pydantic. pip fetches the wheels, pinned by hash: with pyarrow, numpy and pandas the workers
add a bill up in columns. The same sources make the same bytes, on any machine, at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws

from core.ground import naming
from core.ground.errors import StillwaterError
from core.ground.naming import SAMPLES_FOLDER, package_folder
from infra import iam
from infra.functions import function
from infra.functions.packaging import (
    LEFT_OUT,
    ROOT,
    SUFFIXES,
    archive,
    cache_directory,
    own_price_file,
)
from infra.iam import Account, Statement
from infra.versions import EMR_ARCHITECTURE, EMR_PYTHON, EMR_RELEASE

# Spark puts .zip, .egg and .jar on the path of workers; a .whl only the driver would find.
NAME = "stillwater-jobs-0.1.0.zip"
SOURCES = ("core", "spark")
# What spark-submit runs; everything else is in the zip.
LAUNCHER = "from spark.entry import main\n\nmain()\n"


def build(directory: Path | None = None, *, own_prices: Path | None = None) -> Path:
    """Write the zip into a folder named by its content, unless it is there; return its path.

    `own_prices` is the price file of the directory that is built from.
    """
    content = archive(_contents(own_prices))
    digest = hashlib.sha256(content).hexdigest()[:16]
    target = (directory or cache_directory().with_name("jobs")) / digest / NAME
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(f".{hashlib.sha256(str(id(content)).encode()).hexdigest()[:8]}")
        part.write_bytes(content)
        part.replace(target)
    return target


def _contents(own_prices: Path | None) -> dict[str, bytes]:
    files = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for package in SOURCES
        for path in (ROOT / package).rglob("*")
        if path.suffix in (*SUFFIXES, ".toml")
    }
    files = {name: data for name, data in files.items() if not name.startswith(LEFT_OUT)}
    return {**files, **own_price_file(own_prices)}


# `make lock` writes it: hashes, no addresses. Where packages come from is pip's own setting.
REQUIREMENTS = Path(__file__).with_name("emr-requirements.txt")
# Where no EMR reads them, as in the twin: `never`.
SWITCH, NEVER = "STILLWATER_EMR_WHEELS", "never"
# EMR's images are Amazon Linux 2023, with glibc 2.34.
_GLIBC = ("2_34", "2_28", "2_27", "2_17")
_MACHINE = {"ARM64": "aarch64", "X86_64": "x86_64"}[EMR_ARCHITECTURE]
FETCH_SECONDS = 300
WITHOUT = (
    "No report runs on EMR without them: run `stillwater up` on a machine whose pip finds them, "
    "or make reports on a machine of your own."
)
REASON_CHARACTERS = 300


class WheelsNotFetched(StillwaterError):
    """Says why there are no wheels, without which no report runs on EMR."""


def fetch_wheels(directory: Path | None = None) -> Mapping[str, Path]:
    """Return the wheels by their packages' names, from the cache or by pip.

    Each stands in a folder named by its content. None are returned where SWITCH says so. Raises
    WheelsNotFetched, and then nothing is kept of what pip may have fetched.
    """
    if os.environ.get(SWITCH) == NEVER:
        return {}
    root = directory or cache_directory().with_name("emr-wheels")
    target = root / _digest(REQUIREMENTS.read_bytes() + " ".join(_pip_target()).encode())
    try:
        if not target.is_dir():
            root.mkdir(parents=True, exist_ok=True)
            _fetch(root, target)
        found = {path.name.partition("-")[0]: path for path in target.glob("*/*.whl")}
        return dict(sorted(found.items()))
    except OSError as error:
        problem = f"The wheels for EMR's Python cannot be kept in {root} ({error.strerror})."
        raise WheelsNotFetched(problem) from None


def _fetch(root: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetched-", dir=root) as scratch:
        _download(Path(scratch))
        made = Path(scratch) / "wheels"
        for wheel in sorted(Path(scratch).glob("*.whl")):
            folder = made / _digest(wheel.read_bytes())
            folder.mkdir(parents=True)
            wheel.rename(folder / wheel.name)
        # Whole or not at all; another program may have been as quick.
        if not target.is_dir():
            made.rename(target)


def _download(folder: Path) -> None:
    command = [
        *(sys.executable, "-m", "pip", "download", "--dest", str(folder)),
        *("--requirement", str(REQUIREMENTS), "--require-hashes", "--no-deps"),
        *("--only-binary", ":all:", *_pip_target()),
        *("--quiet", "--no-input", "--disable-pip-version-check", "--retries", "2"),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        reason = f"pip took longer than {FETCH_SECONDS} s"
    else:
        if done.returncode == 0:
            return
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR: ")]
        said = (errors or lines or ["pip gave no reason"])[-1]
        reason = said.removeprefix("ERROR: ").rstrip(".")[:REASON_CHARACTERS]
    raise WheelsNotFetched(
        f"pip did not fetch pyarrow, numpy and pandas for EMR's Python {EMR_PYTHON} on {_MACHINE}: "
        f"{reason}."
    )


def _pip_target() -> Sequence[str]:
    platforms = (f"manylinux_{glibc}_{_MACHINE}" for glibc in _GLIBC)
    return (
        *("--implementation", "cp", "--python-version", EMR_PYTHON),
        *(word for platform in platforms for word in ("--platform", platform)),
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


IDLE_MINUTES = 15
# What a month of a large account needs, and a bound on what a runaway job can cost.
MAXIMUM_CPU, MAXIMUM_MEMORY, MAXIMUM_DISK = "64 vCPU", "256 GB", "1000 GB"


def application(
    name: str, prefix: str, opts: pulumi.ResourceOptions
) -> aws.emrserverless.Application:
    """Create the application, which starts with a job and stops by itself."""
    return aws.emrserverless.Application(
        name,
        name=f"{prefix}-reports",
        type="SPARK",
        release_label=EMR_RELEASE,
        architecture=EMR_ARCHITECTURE,
        auto_start_configuration={"enabled": True},
        auto_stop_configuration={"enabled": True, "idle_timeout_minutes": IDLE_MINUTES},
        # What a run costs is on the bill under the run's own tags.
        job_level_cost_allocation_configuration={"enabled": True},
        maximum_capacity={"cpu": MAXIMUM_CPU, "memory": MAXIMUM_MEMORY, "disk": MAXIMUM_DISK},
        opts=opts,
    )


# Folders of the billing bucket, beside the one the export is delivered to and SAMPLES_FOLDER.
CODE, FACTS, TABLES, LOGS = "code", "facts", "tables", "logs"
TIMEOUT_MINUTES = 120
# The jar that EMR's Spark brings; the catalog is Glue's.
ICEBERG_JAR = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
CATALOG = "glue"
# Of EMR's own worker (4 vCPU, 16 GB; 14 for Java, a tenth beside it): each core has a Python, which
# holds half a GiB of a bill's lines, the driver's as well (docs/reference/bill-measured.md).
_ROOM = {"memory": "12g", "memoryOverhead": "4g"}
ROOM_FOR_PYTHON = {f"spark.{w}.{k}": v for w in ("driver", "executor") for k, v in _ROOM.items()}


@dataclass(frozen=True, kw_only=True)
class JobParts:
    """What the job is made of; jobs, launcher, packages and facts are keys of the bucket."""

    name: str
    cluster: str
    tags: Mapping[str, str]
    # Options that say which tags mean Kafka; None is ours.
    bill_tags: Mapping[str, str | None]
    application: str
    role: str
    bucket: str
    # Where the export writes, below the bucket.
    bill: str
    jobs: str
    launcher: str
    # Python packages that EMR does not bring, each a wheel, by name; {}: there are none.
    packages: Mapping[str, str]
    facts: str
    # None: no incidents are filed.
    incidents_bucket: str | None
    database: str

    @property
    def root(self) -> str:
        return f"s3://{self.bucket}"


def start(made: JobParts) -> dict[str, Any]:
    """Return the request that starts the job once."""
    return {
        "ApplicationId": made.application,
        "ExecutionRoleArn": made.role,
        "Name": made.name,
        "ExecutionTimeoutMinutes": TIMEOUT_MINUTES,
        "JobDriver": {
            "SparkSubmit": {
                "EntryPoint": f"{made.root}/{made.launcher}",
                "EntryPointArguments": _arguments(made),
                "SparkSubmitParameters": " ".join(
                    f"--conf {key}={value}" for key, value in _settings(made).items()
                ),
            }
        },
        "ConfigurationOverrides": {
            "MonitoringConfiguration": {
                "S3MonitoringConfiguration": {"LogUri": f"{made.root}/{LOGS}/"}
            }
        },
        # Job runs are billed apart, under the cluster's own tags.
        "Tags": dict(made.tags),
    }


def _arguments(made: JobParts) -> list[str]:
    """Return what the job is told (spark.entry)."""
    return [
        *("--bill", f"{made.root}/{made.bill}"),
        *("--namespace", f"{CATALOG}.{made.database}"),
        # A run by hand has tables of its own, which know nothing of earlier readings.
        *("--noted-in", f"{CATALOG}.{made.database}"),
        *("--cluster", made.cluster),
        *("--facts", f"{made.root}/{made.facts}"),
        *("--metrics", f"{made.root}/{SAMPLES_FOLDER}"),
        *_history(made),
        *(word for name, tag in made.bill_tags.items() if tag for word in (name, tag)),
        # Never years of months: the tables keep those that are final.
        "--unsettled",
    ]


def _history(made: JobParts) -> list[str]:
    if made.incidents_bucket is None:
        return []
    return ["--history", f"s3://{made.incidents_bucket}/{function.FOLDER}"]


def packages(addresses: Mapping[str, str], python: str = EMR_PYTHON) -> dict[str, str]:
    """Return the setting by which these wheels are unpacked on the driver and every executor.

    The job itself puts them on Python's path (spark.session), if they are for its Python.
    """
    if not addresses:
        return {}
    unpacked = (f"{at}#{package_folder(name, python)}" for name, at in addresses.items())
    return {"spark.archives": ",".join(unpacked)}


def _settings(made: JobParts) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {
        **packages({name: f"{made.root}/{key}" for name, key in made.packages.items()}),
        **(ROOM_FOR_PYTHON if made.packages else {}),
        "spark.submit.pyFiles": f"{made.root}/{made.jobs}",
        "spark.jars": ICEBERG_JAR,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        f"{catalog}.warehouse": f"{made.root}/{TABLES}",
    }


TYPE = "stillwater:infra:ReportJob"
# AWS corrects a day's bill within a day; in the morning yesterday's is there.
SCHEDULE = "cron(0 6 * * ? *)"


@dataclass(frozen=True, kw_only=True)
class ReportJobArgs:
    prefix: str
    cluster: str
    account: Account
    bucket: pulumi.Input[str]
    bucket_arn: pulumi.Input[str]
    application_arn: pulumi.Input[str]
    application_id: pulumi.Input[str]
    # Where the export writes, below the bucket.
    bill: pulumi.Input[str]
    # What core.settings.facts writes of the cluster.
    facts: str
    tags: Mapping[str, str]
    # Where the sweep files closed incidents; None: nobody does.
    incidents_bucket: pulumi.Input[str] | None = None
    bill_cluster_tag: str | None = None
    bill_pool_tag: str | None = None
    own_prices: Path | None = None  # the price file of the directory that is built from


class ReportJob(pulumi.ComponentResource):
    """A role for the job, its code in the bucket, a Glue database, and a daily start."""

    job: pulumi.Output[str]

    def __init__(
        self, name: str, args: ReportJobArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        database = aws.glue.CatalogDatabase(
            f"{name}-tables", name=_database(args.prefix), opts=self._child
        )
        role = self._role()
        jobs, launcher = self._code()
        facts = self._facts()
        self.job = pulumi.Output.all(
            name=naming.reports(args.prefix),
            cluster=args.cluster,
            tags=dict(args.tags),
            bill_tags={"--cluster-tag": args.bill_cluster_tag, "--pool-tag": args.bill_pool_tag},
            application=args.application_id,
            role=role.arn,
            bucket=args.bucket,
            bill=args.bill,
            jobs=jobs.key,
            launcher=launcher.key,
            packages=self._packages(),
            facts=facts.key,
            incidents_bucket=args.incidents_bucket,
            database=database.name,
        ).apply(lambda made: json.dumps(start(JobParts(**made))))
        self._schedule(role)
        self.register_outputs({"job": self.job})

    def _role(self) -> aws.iam.Role:
        args, arn = self._args, self._args.bucket_arn
        role = aws.iam.Role(
            f"{self._name}-role",
            name=f"{args.prefix}-report-job",
            assume_role_policy=iam.trust("emr-serverless.amazonaws.com", self),
            opts=self._child,
        )
        database = _database(args.prefix)
        catalog = [
            args.account.arn("glue", "catalog"),
            args.account.arn("glue", f"database/{database}"),
            args.account.arn("glue", f"table/{database}/*"),
        ]

        bill = pulumi.Output.from_input(args.bill).apply(lambda path: path.split("/")[0])

        def below(*folders: pulumi.Input[str]) -> list[pulumi.Output[str]]:
            return [pulumi.Output.concat(arn, "/", folder, "/*") for folder in folders]

        statements = [
            Statement(sid="ListBucket", actions=["s3:ListBucket"], resources=[arn]),
            Statement(
                sid="ReadInputsAndCode",
                actions=["s3:GetObject"],
                # Hadoop first asks whether a folder is an object, and takes a 403 for an end.
                resources=[
                    *below(bill, CODE, FACTS, naming.SAMPLES_FOLDER),
                    pulumi.Output.concat(arn, "/", naming.SAMPLES_FOLDER),
                ],
            ),
            *self._may_read_history(),
            Statement(
                sid="KeepTablesAndLogs",
                actions=["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
                resources=below(TABLES, LOGS),
            ),
            Statement(
                sid="CatalogueTables",
                actions=[
                    "glue:CreateTable",
                    "glue:GetDatabase",
                    "glue:GetTable",
                    "glue:GetTables",
                    "glue:UpdateTable",
                ],
                resources=catalog,
            ),
        ]
        iam.allow(f"{self._name}-policy", role, statements, self)
        return role

    def _may_read_history(self) -> list[Statement]:
        args, folder = self._args, function.FOLDER
        if args.incidents_bucket is None:
            return []
        arn = pulumi.Output.concat(f"arn:{args.account.partition}:s3:::", args.incidents_bucket)
        return [
            Statement(
                sid="ListIncidents",
                actions=["s3:ListBucket"],
                resources=[arn],
                conditions={"StringLike": {"s3:prefix": [folder, f"{folder}/*"]}},
            ),
            Statement(
                sid="ReadIncidents",
                actions=["s3:GetObject"],
                # Hadoop first asks whether the folder is an object, and takes a 403 for an end.
                resources=[pulumi.Output.concat(arn, "/", key) for key in (folder, f"{folder}/*")],
            ),
        ]

    def _stored(self, name: str, key: str, **content: Any) -> aws.s3.BucketObjectv2:
        return aws.s3.BucketObjectv2(
            f"{self._name}-{name}",
            bucket=self._args.bucket,
            key=key,
            # S3 takes ten tags on an object where all else takes fifty, and a bill is split by its
            # bucket's: the provider's default tags are kept off.
            override_provider={"default_tags": {"tags": {}}},
            opts=self._child,
            **content,
        )

    def _facts(self) -> aws.s3.BucketObjectv2:
        # One key, unlike the code's: a job reads it once, whole, and the latest is what counts.
        written = {"content": self._args.facts, "content_type": "application/json"}
        return self._stored("facts", f"{FACTS}/cluster.json", **written)

    def _code(self) -> tuple[aws.s3.BucketObjectv2, aws.s3.BucketObjectv2]:
        path = build(own_prices=self._args.own_prices)
        # The folder is the content's hash: a job that runs keeps the code that it started with.
        folder = f"{CODE}/{path.parent.name}"
        jobs = self._stored("jobs", f"{folder}/{path.name}", source=pulumi.FileAsset(str(path)))
        launcher = self._stored("launcher", f"{folder}/launcher.py", content=LAUNCHER)
        return jobs, launcher

    def _packages(self) -> dict[str, pulumi.Output[str]]:
        """Put what EMR's Python lacks beside the code; without it the job reads more slowly."""
        try:
            wheels = fetch_wheels()
        except WheelsNotFetched as error:
            pulumi.log.warn(f"{error} {WITHOUT}")
            return {}
        # Spark unpacks by the ending alone.
        keys = {name: f"{CODE}/{path.parent.name}/{path.stem}.zip" for name, path in wheels.items()}
        return {
            name: self._stored(name, keys[name], source=pulumi.FileAsset(str(path))).key
            for name, path in wheels.items()
        }

    def _schedule(self, job_role: aws.iam.Role) -> None:
        args = self._args
        role = aws.iam.Role(
            f"{self._name}-schedule-role",
            name=f"{args.prefix}-report-schedule",
            # The schedule's group: AWS warns against naming the schedule itself.
            assume_role_policy=iam.trust(
                "scheduler.amazonaws.com", self, source="schedule-group/default"
            ),
            opts=self._child,
        )
        runs = pulumi.Output.concat(args.application_arn, "/jobruns/*")
        statements = [
            Statement(
                sid="StartTheJob",
                actions=["emr-serverless:StartJobRun", "emr-serverless:TagResource"],
                resources=[args.application_arn, runs],
            ),
            Statement(
                sid="AsItsRole",
                actions=["iam:PassRole"],
                resources=[job_role.arn],
                conditions={
                    "StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}
                },
            ),
        ]
        iam.allow(f"{self._name}-schedule-policy", role, statements, self)
        aws.scheduler.Schedule(
            f"{self._name}-schedule",
            name=naming.reports(args.prefix),
            schedule_expression=SCHEDULE,
            flexible_time_window={"mode": "FLEXIBLE", "maximum_window_in_minutes": 60},
            target=aws.scheduler.ScheduleTargetArgs(
                arn="arn:aws:scheduler:::aws-sdk:emrserverless:startJobRun",
                role_arn=role.arn,
                # The same start twice is one job.
                input=self.job.apply(
                    lambda job: json.dumps(
                        {**json.loads(job), "ClientToken": "<aws.scheduler.execution-id>"}
                    )
                ),
            ),
            opts=self._child,
        )


def _database(prefix: str) -> str:
    """Return a Glue database's name: no hyphens, which SQL takes for a minus."""
    return prefix.replace("-", "_")
