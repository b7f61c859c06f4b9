"""Runs kube-score, and Checkov and parliament, which live in an environment of their own.

Their pins and ours exclude each other. The environment is made once per machine from hashed
requirements, in the per-user cache; all it takes is Python and pip. kube-score is a Go program of
local.tools.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from local.place import cache_directory
from local.tools import tool_path
from local.tools.build import making

REPOSITORY = Path(__file__).resolve().parents[3]
REQUIREMENTS = REPOSITORY / "requirements-checkov.txt"
INSTALL_SECONDS, CHECK_SECONDS = 600, 300
# kube-score's grade of a check without a finding; 1 is critical, 5 a warning, 7 almost.
PASSED = 10
# Run inside that environment: findings of parliament and its database of the IAM reference.
JUDGE = Path(__file__).with_name("judge_policies.py")


def python() -> Path:
    """Return the interpreter of the linters' environment, made first where there is none."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    home = cache_directory() / "linters" / digest
    with making(home, lambda: None) as staging:
        if staging is not None:
            _install(staging)
    return home / "bin" / "python"


def _install(where: Path) -> None:
    made = _run([sys.executable, "-m", "venv", str(where)], INSTALL_SECONDS)
    if made.returncode != 0:
        raise RuntimeError(f"no virtual environment can be made: {made.stderr.strip()}")
    pip = [str(where / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input"]
    flags = ["--disable-pip-version-check", "--no-compile", "--require-hashes"]
    done = _run([*pip, *flags, "--requirement", str(REQUIREMENTS)], INSTALL_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"pip cannot install Checkov here: {done.stderr.strip()}")


def checkov(path: Path, framework: str) -> list[dict[str, Any]]:
    """Return the checks that failed in a file or a folder."""
    where = ["--file" if path.is_file() else "--directory", str(path)]
    done = _run(
        [
            str(python()),
            *("-m", "checkov.main", *where, "--framework", framework, "--output", "json"),
            *("--compact", "--quiet", "--skip-download"),
        ],
        CHECK_SECONDS,
    )
    # 1: something failed. Anything else than JSON is an error of Checkov's own.
    assert done.returncode in (0, 1), done.stderr[-3000:]
    answer = json.loads(done.stdout)
    assert answer["summary"]["parsing_errors"] == 0, answer
    assert answer["summary"]["passed"] > 0, "Checkov looked at nothing"
    return list(answer["results"]["failed_checks"])


def kube_score(files: Iterable[Path], kubernetes: str) -> list[tuple[str, str]]:
    """Return what kube-score finds in manifests: check and Kind.namespace.name."""
    command = [str(tool_path("kube-score")), "score", "--output-format", "json"]
    named = [str(path) for path in files]
    version = "v" + kubernetes.rpartition(".")[0]
    done = _run([*command, "--kubernetes-version", version, *named], CHECK_SECONDS)
    # 1: something failed. Anything else than JSON is an error of kube-score's own.
    assert done.returncode in (0, 1), done.stderr[-3000:]
    judged = json.loads(done.stdout)
    assert judged, "kube-score looked at nothing"
    return [
        (check["check"]["id"], _object_name(each))
        for each in judged
        for check in each["checks"]
        if not check["skipped"] and check["grade"] < PASSED
    ]


def _object_name(judged: Mapping[str, Any]) -> str:
    metadata = judged["object_meta"]
    return f"{judged['type_meta']['kind']}.{metadata['namespace']}.{metadata['name']}"


def parliament(policies: Mapping[str, str], home: Path) -> dict[str, Any]:
    """Return what judge_policies.py finds in policies, by their names."""
    asked = home / "policies.json"
    asked.write_text(json.dumps(policies))
    done = _run([str(python()), str(JUDGE), str(asked)], CHECK_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _run(command: list[str], limit_seconds: float) -> subprocess.CompletedProcess[str]:
    # Without our own PYTHONPATH: the linters' packages and ours do not mix.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=limit_seconds
    )
