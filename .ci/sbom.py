"""Writes a lock's packages as a CycloneDX document: .ci/sbom.py LOCK NAME VERSION >FILE."""

import json
import re
import sys
from pathlib import Path
from typing import Any


def document(lock: str, name: str, version: str) -> dict[str, Any]:
    """Return every package of a lock with the hashes that pip accepts for it."""
    parts = re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": name, "version": version}},
        "components": [_component(part) for part in parts if "==" in part],
    }


def _component(locked: str) -> dict[str, Any]:
    name, version = re.findall(r"^([\w.-]+)==([^\s;]+)", locked)[0]
    hashes = sorted(set(re.findall(r"--hash=sha256:([0-9a-f]{64})", locked)))
    purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        # One for each file of it that the lock takes.
        "hashes": [{"alg": "SHA-256", "content": each} for each in hashes],
    }


if __name__ == "__main__":
    path, name, version = sys.argv[1:]
    json.dump(document(Path(path).read_text(), name, version), sys.stdout, indent=2)
