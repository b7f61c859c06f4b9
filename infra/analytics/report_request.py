"""Builds the request to EMR Serverless that starts the job that turns bills into tables.

In the scheduler's spelling, which writes StartJobRun's keys with capitals. `stillwater report --on
emr` reads it back from the schedule, and changes where tables are made and of which months.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.naming import SAMPLES_FOLDER, package_folder
from infra.functions import ledger
from infra.versions import EMR_PYTHON

# Folders of the billing bucket, beside the one the export is delivered to and SAMPLES_FOLDER.
CODE, FACTS, TABLES, LOGS = "code", "facts", "tables", "logs"
SCRATCH = f"{TABLES}/.scratch"
TIMEOUT_MINUTES = 120
# The jar that EMR's Spark brings; the catalog is Glue's.
ICEBERG_JAR = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
CATALOG = "glue"
# Of EMR's own worker (4 vCPU, 16 GB; 14 for Java, a tenth beside it): each core has a Python, which
# holds half a GiB of a bill's lines where it adds them up (docs/reference/bill-measured.md).
ROOM_FOR_PYTHON = {"spark.executor.memory": "12g", "spark.executor.memoryOverhead": "4g"}


@dataclass(frozen=True, kw_only=True)
class DescribedJob:
    """What is known of the job before anything is made."""

    name: str
    cluster: str
    tags: Mapping[str, str]
    # Options that say which tags mean Kafka; None is ours.
    bill_tags: Mapping[str, str | None]


@dataclass(frozen=True, kw_only=True)
class JobParts:
    """What the job is made of; jobs, launcher, packages and facts are keys of the bucket."""

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


def start(job: DescribedJob, made: JobParts) -> dict[str, Any]:
    """Return the request that starts the job once."""
    return {
        "ApplicationId": made.application,
        "ExecutionRoleArn": made.role,
        "Name": job.name,
        "ExecutionTimeoutMinutes": TIMEOUT_MINUTES,
        "JobDriver": {
            "SparkSubmit": {
                "EntryPoint": f"{made.root}/{made.launcher}",
                "EntryPointArguments": _arguments(job, made),
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
        "Tags": dict(job.tags),
    }


def _arguments(job: DescribedJob, made: JobParts) -> list[str]:
    """Return what the job is told (spark.entry)."""
    return [
        *("--bill", f"{made.root}/{made.bill}"),
        *("--namespace", f"{CATALOG}.{made.database}"),
        # A run by hand has tables of its own, which know nothing of earlier readings.
        *("--noted-in", f"{CATALOG}.{made.database}"),
        *("--cluster", job.cluster),
        *("--facts", f"{made.root}/{made.facts}"),
        *("--metrics", f"{made.root}/{SAMPLES_FOLDER}"),
        *_history(made),
        *(word for name, tag in job.bill_tags.items() if tag for word in (name, tag)),
        "--all-jobs",
        # Never years of months: the tables keep those that are final.
        "--unsettled",
    ]


def _history(made: JobParts) -> list[str]:
    if made.incidents_bucket is None:
        return []
    return ["--history", f"s3://{made.incidents_bucket}/{ledger.FOLDER}"]


def packages(addresses: Mapping[str, str], python: str = EMR_PYTHON) -> dict[str, str]:
    """Return the setting by which these wheels are unpacked on the driver and every executor.

    The job itself puts them on Python's path (spark.packages), if they are for its Python.
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
        "spark.stillwater.scratch": f"{made.root}/{SCRATCH}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        f"{catalog}.warehouse": f"{made.root}/{TABLES}",
        # All jobs on several months compile more stages than Spark keeps by itself (100).
        "spark.sql.codegen.cache.maxEntries": "400",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
