"""The job that turns bills into tables: its role, its code, and the schedule that starts it.

Every morning EventBridge Scheduler starts the job on the EMR Serverless application, with the very
wheel of this program; `stillwater report --on emr` starts the same job by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from core import naming
from infra import iam, spark_wheel
from infra.iam import Account, Statement

TYPE = "stillwater:infra:ReportJob"
CODE, TABLES, LOGS = "code", "tables", "logs"
# AWS corrects a day's bill within a day; in the morning yesterday's is there.
SCHEDULE = "cron(0 6 * * ? *)"
TIMEOUT_MINUTES = 120
# The jar that EMR's Spark brings; the catalog is Glue's.
ICEBERG_JAR = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
CATALOG = "glue"


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
    bill: str
    tags: Mapping[str, str]


class ReportJob(pulumi.ComponentResource):
    """A role for the job, its wheel in the bucket, a Glue database, and a daily start."""

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
        wheel, launcher = self._code()
        self.job = pulumi.Output.all(
            args.bucket, args.application_id, role.arn, wheel.key, launcher.key, database.name
        ).apply(lambda parts: json.dumps(self._request(*parts)))
        self._schedule(role)
        self.register_outputs({"job": self.job})

    def _role(self) -> aws.iam.Role:
        args, arn = self._args, self._args.bucket_arn
        role = aws.iam.Role(
            f"{self._name}-role",
            name=f"{args.prefix}-report-job",
            assume_role_policy=iam.trust("emr-serverless.amazonaws.com"),
            opts=self._child,
        )
        database = _database(args.prefix)
        catalog = [
            args.account.arn("glue", "catalog"),
            args.account.arn("glue", f"database/{database}"),
            args.account.arn("glue", f"table/{database}/*"),
        ]

        def below(*folders: str) -> list[pulumi.Output[str]]:
            return [pulumi.Output.concat(arn, "/", folder, "/*") for folder in folders]

        statements = [
            Statement(sid="ListBucket", actions=["s3:ListBucket"], resources=[arn]),
            Statement(
                sid="ReadBillsAndCode",
                actions=["s3:GetObject"],
                resources=below(args.bill.split("/")[0], CODE),
            ),
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
        aws.iam.RolePolicy(
            f"{self._name}-policy",
            role=role.name,
            policy=iam.policy(statements),
            opts=self._child,
        )
        return role

    def _code(self) -> tuple[aws.s3.BucketObjectv2, aws.s3.BucketObjectv2]:
        path = spark_wheel.build()
        # The folder is the content's hash: a job that runs keeps the code that it started with.
        folder = f"{CODE}/{path.parent.name}"
        wheel = aws.s3.BucketObjectv2(
            f"{self._name}-wheel",
            bucket=self._args.bucket,
            key=f"{folder}/{path.name}",
            source=pulumi.FileAsset(str(path)),
            opts=self._child,
        )
        launcher = aws.s3.BucketObjectv2(
            f"{self._name}-launcher",
            bucket=self._args.bucket,
            key=f"{folder}/launcher.py",
            content=spark_wheel.LAUNCHER,
            opts=self._child,
        )
        return wheel, launcher

    def _schedule(self, job_role: aws.iam.Role) -> None:
        args = self._args
        role = aws.iam.Role(
            f"{self._name}-schedule-role",
            name=f"{args.prefix}-report-schedule",
            assume_role_policy=iam.trust("scheduler.amazonaws.com"),
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
        aws.iam.RolePolicy(
            f"{self._name}-schedule-policy",
            role=role.name,
            policy=iam.policy(statements),
            opts=self._child,
        )
        aws.scheduler.Schedule(
            f"{self._name}-schedule",
            name=naming.reports(args.prefix),
            schedule_expression=SCHEDULE,
            flexible_time_window=aws.scheduler.ScheduleFlexibleTimeWindowArgs(
                mode="FLEXIBLE", maximum_window_in_minutes=60
            ),
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

    def _request(
        self, bucket: str, application: str, role: str, wheel: str, launcher: str, database: str
    ) -> dict[str, Any]:
        """Return EMR's StartJobRun, as the scheduler writes its keys."""
        args, root = self._args, f"s3://{bucket}"
        conf = {
            "spark.submit.pyFiles": f"{root}/{wheel}",
            "spark.jars": ICEBERG_JAR,
            "spark.stillwater.scratch": f"{root}/{TABLES}/.scratch",
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
            f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
            f"spark.sql.catalog.{CATALOG}.catalog-impl": (
                "org.apache.iceberg.aws.glue.GlueCatalog"
            ),
            f"spark.sql.catalog.{CATALOG}.warehouse": f"{root}/{TABLES}",
        }
        return {
            "ApplicationId": application,
            "ExecutionRoleArn": role,
            "Name": naming.reports(args.prefix),
            "ExecutionTimeoutMinutes": TIMEOUT_MINUTES,
            "JobDriver": {
                "SparkSubmit": {
                    "EntryPoint": f"{root}/{launcher}",
                    "EntryPointArguments": [
                        *("--bill", f"{root}/{args.bill}"),
                        *("--namespace", f"{CATALOG}.{database}"),
                        *("--cluster", args.cluster),
                    ],
                    "SparkSubmitParameters": " ".join(
                        f"--conf {key}={value}" for key, value in conf.items()
                    ),
                }
            },
            "ConfigurationOverrides": {
                "MonitoringConfiguration": {
                    "S3MonitoringConfiguration": {"LogUri": f"{root}/{LOGS}/"}
                }
            },
            # Job runs are billed apart, under the cluster's own tags.
            "Tags": dict(args.tags),
        }


def _database(prefix: str) -> str:
    """Return a Glue database's name: no hyphens, which SQL takes for a minus."""
    return prefix.replace("-", "_")
