"""Offers a Python Lambda function what it finds beside its zip: boto3 and the runtime client.

The twin's virtual environment holds far more, this repository among it. A function that imports
something its zip lacks must fail here as it would on Lambda.
"""

from __future__ import annotations

import importlib.metadata
import shutil
from pathlib import Path

# What AWS's Python runtimes carry, and what their client needs.
DISTRIBUTIONS = (
    "awslambdaric",
    "boto3",
    "botocore",
    "jmespath",
    "python-dateutil",
    "s3transfer",
    "simplejson",
    "six",
    "snapshot-restore-py",
    "urllib3",
)


def install(directory: Path) -> Path:
    """Fill a fresh directory with links to those distributions' modules; return it."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name in DISTRIBUTIONS:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
        for top in tops:
            (directory / top).symlink_to(Path(str(distribution.locate_file(top))))
    return directory
