"""The twin's own copy of the Pulumi project: same program, its stack settings in the place.

The engine writes an encryption salt and configuration into the project's stack files. In the
repository those are the user's; a demo leaves no trace there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from core.ground.naming import LAYERS
from local.place import Place
from local.processes import REPOSITORY

SETTINGS = "config"


def twin_project(
    place: Place, environment: str, spec: Path, layers: Sequence[str] = LAYERS
) -> Path:
    """Write the project into the place and return its directory."""
    directory = place.path("project")
    (directory / SETTINGS).mkdir(parents=True, exist_ok=True)
    project = yaml.safe_load((REPOSITORY / "Pulumi.yaml").read_text())
    runtime: dict[str, object] = {"name": "python"}
    if sys.prefix != sys.base_prefix:
        # For the user's own language host; ours runs the interpreter it runs on itself.
        runtime["options"] = {"toolchain": "pip", "virtualenv": sys.prefix}
    project |= {
        "main": str(REPOSITORY / project["main"]),
        "stackConfigDir": SETTINGS,
        "runtime": runtime,
    }
    (directory / "Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False))
    for layer in layers:
        file = directory / SETTINGS / f"Pulumi.{environment}-{layer}.yaml"
        settings = yaml.safe_load(file.read_text()) if file.exists() else {}
        settings["config"] = {"stillwater:spec": str(spec.resolve())}
        file.write_text(yaml.safe_dump(settings, sort_keys=False))
    return directory
