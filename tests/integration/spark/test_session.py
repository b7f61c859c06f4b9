"""A local session whose Java dies: a sentence, and nothing of it left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
