"""Puts the twin's plugins where the engine looks for them, and its copy of the Pulumi project.

The language host stands beside the engine's own executable and the providers in the engine's
plugin folder: a plugin found on the PATH instead would add a warning to every command's output.

The engine writes an encryption salt and configuration into the project's stack files. In the
repository those are the user's; a demo leaves no trace there.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import yaml

from core.ground.naming import LAYERS
from local.environment import with_credentials
from local.place import Place
from local.processes import REPOSITORY
from local.tools import tool_path

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


ENGINE = "pulumi"
LANGUAGE_HOST = "pulumi-language-python"
# Provider -> (the package whose version the program asks for, the module that serves it).
PROVIDERS = {
    "aws": ("pulumi-aws", "local.pulumi.aws_provider"),
    "kubernetes": ("pulumi-kubernetes", "local.pulumi.kubernetes_provider"),
}
# The engine encrypts secrets in a state that is deleted with the twin.
PASSPHRASE = "stillwater-twin"  # noqa: S105


def _script(path: Path, module: str) -> Path:
    """Write an executable that becomes `python -m module` of this interpreter and repository.

    The engine starts plugins in the program's directory, where a file may be named like a module
    of the standard library; -P keeps that directory off the path.
    """
    python, root = shlex.quote(sys.executable), shlex.quote(str(REPOSITORY))
    path.parent.mkdir(parents=True, exist_ok=True)
    others = '"${PYTHONPATH:+:$PYTHONPATH}"'
    path.write_text(f'#!/bin/sh\nPYTHONPATH={root}{others} exec {python} -P -m {module} "$@"\n')
    path.chmod(0o755)
    return path


def _place_engine(executable: Path, bin_directory: Path) -> None:
    """Put the engine into bin/; it takes the language host that stands beside its real file."""
    source, target = executable.resolve(), bin_directory / ENGINE
    if source == target.absolute():
        return  # found on a PATH that has this twin's bin/ in front
    target.unlink(missing_ok=True)
    if source.with_name(LANGUAGE_HOST).exists():
        target.symlink_to(source)
        (bin_directory / LANGUAGE_HOST).unlink(missing_ok=True)
        return
    try:
        os.link(source, target)
    except OSError:
        # Another file system, or one without hard links.
        shutil.copy2(source, target)
    _script(bin_directory / LANGUAGE_HOST, "local.pulumi.language_host")


def install(place: Place, executable: Path | None = None) -> None:
    """Write the engine, the language host and the providers into the place; safe to repeat."""
    bin_directory = place.path("bin")
    bin_directory.mkdir(parents=True, exist_ok=True)
    _place_engine(executable or tool_path(ENGINE), bin_directory)
    for provider, (package, module) in PROVIDERS.items():
        folder = place.path("pulumi", "plugins", f"resource-{provider}-v{version(package)}")
        script = _script(folder / f"pulumi-resource-{provider}", module)
        link = bin_directory / script.name
        link.unlink(missing_ok=True)
        link.symlink_to(script)


def engine_environment(place: Place) -> dict[str, str]:
    """Return the environment in which `pulumi` works on the twin, and on nothing else."""
    install(place)
    state = place.path("state")
    state.mkdir(parents=True, exist_ok=True)
    environment = with_credentials(place)
    return {
        **environment,
        "PATH": os.pathsep.join([str(place.path("bin")), environment.get("PATH", os.defpath)]),
        "PULUMI_BACKEND_URL": state.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_HOME": str(place.path("pulumi")),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
    }
