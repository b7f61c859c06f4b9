"""A local session whose Java dies: a sentence, and nothing of it left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from spark import java

pytestmark = pytest.mark.integration
SCRIPT = """
from spark.session import local_session

with local_session() as session:
    frame = session.range(9).cache()
    session.sparkContext._gateway.proc.kill()
    session.sparkContext._gateway.proc.wait()
    frame.count()
"""


def test_a_java_that_ends_in_the_middle_is_one_sentence_with_a_remedy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "core.ground.errors.StillwaterError: Spark's Java ended in the middle of its"
    )
    assert "exit code -9" in last
    assert "1g of memory are too little" in last
    assert last.endswith("Read fewer months at a time (--month), or use a cluster (--on emr).")
    assert not list(tmp_path.glob("stillwater-spark-*"))


def test_java_gets_what_sparks_own_launcher_gives_it() -> None:
    home = Path(pyspark.__file__).parent
    told = subprocess.run(
        [
            *("java", "-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main"),
            *("org.apache.spark.deploy.SparkSubmit", "pyspark-shell"),
        ],
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    launched = [each.strip() for each in told.stdout.split("\0")]
    options = {each for each in launched if each.startswith(("--", "-D", "-XX"))}
    assert len(options) > 15
    assert options <= set(java.OPTIONS)
