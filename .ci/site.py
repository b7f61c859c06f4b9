"""Builds docs/ below its version, beside the versions that stand there: python .ci/site.py FOLDER

FOLDER/versions.json lists every version that has a page, the newest first, in the form that the
theme's selector reads; FOLDER/index.html leads to the newest. Publishing a release is building it
into the folder that holds the earlier ones.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
VERSION = re.compile(r"\d+\.\d+\.\d+")
FIRST_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={version}/index.html">
<title>Stillwater</title>
<a href="{version}/index.html">Stillwater {version}</a>
"""


def listed(folder: Path) -> list[str]:
    """Return the versions that have a first page in a folder, the newest first."""
    found = [each.parent.name for each in folder.glob("*/index.html")]
    versions = [name for name in found if VERSION.fullmatch(name)]
    return sorted(versions, key=lambda name: [int(part) for part in name.split(".")], reverse=True)


def index(folder: Path) -> None:
    """Write the list of versions and the first page of a folder that holds at least one."""
    versions = listed(folder)
    entries = [
        {"version": each, "title": each, "aliases": ["latest"] if each == versions[0] else []}
        for each in versions
    ]
    (folder / "versions.json").write_text(json.dumps(entries, indent=1) + "\n")
    (folder / "index.html").write_text(FIRST_PAGE.format(version=versions[0]))


def main(folder: Path) -> None:
    """Build this version's pages and list them beside the others'."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    target = folder.resolve() / project["version"]
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    subprocess.run([*command, "--site-dir", str(target)], cwd=REPOSITORY, check=True)
    # It looks for its style at the root of a domain, and this site stands wherever it is put.
    (target / "404.html").unlink()
    index(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
