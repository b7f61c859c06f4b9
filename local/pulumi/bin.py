"""Puts the twin's plugins where the engine looks for them, and names the engine's environment.

The language host stands beside the engine's own executable and the providers in the engine's
plugin folder: a plugin found on the PATH instead would add a warning to every command's output.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

from local.environment import with_credentials
from local.place import Place
from local.processes import REPOSITORY
from local.tools import tool_path

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
