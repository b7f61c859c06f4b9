"""Finds the files of a CUR 2.0 export: those its manifests name, and no others.

AWS writes a manifest only after all of its data files, and an export that keeps every refresh
(CREATE_NEW_REPORT) leaves the older deliveries beside the newest, so reading a whole folder
counts dollars twice. For each billing period the newest manifest decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from core.errors import InvalidInput

MANIFEST_SUFFIX = "-Manifest.json"
FORMATS = (".parquet", ".csv.gz", ".csv")
_PERIOD = re.compile(r"^BILLING_PERIOD=(\d{4}-\d{2})$")


@dataclass(frozen=True)
class Export:
    """The pinned file list of one export, and what its manifests say of themselves."""

    name: str
    files: Sequence[Path]
    periods: Sequence[str]
    simulated: bool

    @property
    def is_parquet(self) -> bool:
        return all(path.name.endswith(".parquet") for path in self.files)


def pinned(folder: Path) -> Export:
    """Return the data files of an export's folder (the one holding data/ and metadata/).

    Raises InvalidInput for a folder without manifests, a manifest that cannot be read, one that
    names no files, a file that is not there, or two formats in one export.
    """
    if not folder.is_dir():
        raise InvalidInput([f"The CUR 2.0 export {folder} is not a folder; name the export's own."])
    newest = _newest_by_period(folder)
    files: list[Path] = []
    problems: list[str] = []
    manifests = {path: _manifest(path) for path in newest.values()}
    for path, manifest in manifests.items():
        found, missing = _data_files(folder, path, manifest)
        files += found
        problems += missing
    kinds = {next((f for f in FORMATS if file.name.endswith(f)), "another") for file in files}
    if "another" in kinds or (".parquet" in kinds and len(kinds) > 1):
        problems.append(
            f"The CUR 2.0 export {folder} mixes file formats; choose Parquet, or csv with gzip, "
            f"for the whole export."
        )
    if problems:
        raise InvalidInput(problems)
    return Export(
        name=next(iter(newest.values())).name.removesuffix(MANIFEST_SUFFIX),
        files=tuple(files),
        periods=tuple(sorted(newest)),
        simulated=any(m.get("simulated") is True for m in manifests.values()),
    )


def _newest_by_period(folder: Path) -> dict[str, Path]:
    newest: dict[str, Path] = {}
    # The folder of each execution is named by its time, so the last in order is the newest.
    for path in sorted((folder / "metadata").rglob(f"*{MANIFEST_SUFFIX}")):
        period = next((m[1] for part in path.parts if (m := _PERIOD.match(part))), None)
        if period is not None:
            newest[period] = path
    if not newest:
        problem = (
            f"The CUR 2.0 export {folder} has no manifest under metadata/BILLING_PERIOD=YYYY-MM/; "
            f"name the folder that holds data/ and metadata/."
        )
        raise InvalidInput([problem])
    return newest


def _manifest(path: Path) -> Mapping[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput([f"The manifest {path} is not JSON: {error}."]) from None
    names = manifest.get("dataFiles") if isinstance(manifest, dict) else None
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise InvalidInput([f'The manifest {path} names no files under "dataFiles".'])
    return dict(manifest)


def _data_files(
    folder: Path, path: Path, manifest: Mapping[str, Any]
) -> tuple[list[Path], list[str]]:
    found, problems = [], []
    for name in dict.fromkeys(manifest["dataFiles"]):
        relative = _below_export(name)
        if relative is None:
            problems.append(f"The manifest {path} names {name}, which is not below data/.")
        elif not (folder / relative).is_file():
            problems.append(
                f"The manifest {path} names {name}, which is not in the folder; the delivery is "
                f"not complete, so copy the whole export again."
            )
        else:
            found.append(folder / relative)
    return found, problems


def _below_export(name: str) -> PurePosixPath | None:
    """Return data/... of a manifest's s3:// address, or None when it leads anywhere else."""
    parts = PurePosixPath(name).parts
    starts = [i for i, part in enumerate(parts) if part == "data"]
    period = next((i for i, part in enumerate(parts) if _PERIOD.match(part)), None)
    before = [i for i in starts if period is not None and i < period]
    if not before or ".." in parts:
        return None
    return PurePosixPath(*parts[before[-1] :])
