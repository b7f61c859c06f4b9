"""Writes a fleet's file for `stillwater init --fleet`, and the workflow that advances it."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from cli import stack_settings
from cli.project.init import label, load_template, scalar, write_files
from cli.terminal import say
from core.ground.errors import InvalidInput

FILE = "fleet.yaml"
WORKFLOW = ".github/workflows/stillwater-fleet.yaml"


def init_fleet(directory: Path, console: Console, *, force: bool) -> None:
    """Write both for every environment described in a directory, or one level below."""
    if there := [path for path in (FILE, WORKFLOW) if (directory / path).exists() and not force]:
        raise InvalidInput([f"{directory} has {', '.join(there)} already; --force replaces it."])
    known = sorted(_described(directory), key=_canary_first)
    if not known:
        problem = f"{directory} describes no environment, nor does a directory in it"
        raise InvalidInput([f"{problem}: run `stillwater init {shlex.quote(str(directory))}`."])
    counts = Counter(environment for _, environment, _ in known)
    lines: dict[str, str] = {}
    for place, environment, region in known:
        name = environment if counts[environment] == 1 else f"{place}-{environment}"
        # As the fleet's file takes names.
        name = re.sub(r"[^A-Za-z0-9]+", "-", name)[-55:].strip("-")
        while name in lines:
            name += "-2"
        where = f"directory: {scalar(place)}, environment: {scalar(environment)}"
        lines[name] = f"  {scalar(name)}: {{{where}, region: {region}}}"
    names = [*map(scalar, lines)]
    waves = (f"  - {{name: {name}, environments: [{name}], bake_hours: 24}}" for name in names)
    values = {
        "name": scalar(label(directory)),
        "environments": "\n".join(lines.values()),
        "waves": "\n".join(waves),
        "place": scalar(known[0][0]),
    }
    templates = {FILE: "fleet.yaml", WORKFLOW: "fleet-workflow.yaml"}
    texts = {path: load_template(each).substitute(values) for path, each in templates.items()}
    write_files(directory, {path: text.encode() for path, text in texts.items()})
    say(
        console,
        f"Wrote {directory / FILE}: {len(known)} environments, a wave each, and {WORKFLOW}.",
    )
    say(console, f"Next: order the waves, then `stillwater fleet status {directory / FILE}`.")


def _described(directory: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the place, name and region of each environment."""
    for project in sorted({directory, *(p for p in directory.glob("*") if p.is_dir())}):
        if (project / stack_settings.PROJECT_FILE).is_file():
            found = stack_settings.project_at(project)
            for environment in found.environments():
                spec = stack_settings.read_described(environment, found).spec
                yield project.relative_to(directory).as_posix(), environment, spec.region


def _canary_first(found: tuple[str, str, str]) -> tuple[bool, str, str]:
    """Sort what is called production behind the rest."""
    place, environment, _ = found
    return "prod" in environment, environment, place
