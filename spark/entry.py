"""Runs the jobs under spark-submit: on EMR Serverless, on a cluster of one's own, or anywhere.

    spark-submit --py-files stillwater.whl launcher.py --bill s3://... --tables s3://...

What reads a bill needs pyarrow, which comes with the job (spark.session): it is imported then.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from core.ground.errors import StillwaterError
from spark.session import CONVENTIONS, LACKING, PYTHON, add_packages


def main(arguments: Sequence[str] | None = None) -> None:
    """Make a bill's tables; a mistake is a sentence and exit 1."""
    add_packages(_session)
    try:
        from spark.jobs import scheduled  # noqa: PLC0415 - needs what the job brings
    except ImportError as error:
        sys.exit(LACKING.format(python=PYTHON, error=error))
    chosen = scheduled.parser().parse_args(arguments)
    try:
        print(scheduled.run(_session, chosen, datetime.now(UTC)))  # noqa: T201 - the job's log is all its caller sees
    except StillwaterError as error:
        sys.exit(str(error))
    finally:
        if session := SparkSession.getActiveSession():
            session.stop()


def _session() -> SparkSession:
    """Return the session that spark-submit describes, started at the first call."""
    session = SparkSession.builder.appName("stillwater").getOrCreate()
    for key, value in CONVENTIONS.items():
        session.conf.set(key, value)
    return session


if __name__ == "__main__":
    main()
