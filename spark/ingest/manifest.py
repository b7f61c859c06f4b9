"""Says which files of a folder are the bill: those its manifests name or, without any, all.

AWS writes a manifest when all of a refresh's data is in place. Exports that keep every refresh
(CREATE_NEW_REPORT) leave older files beside the newest, and a refresh that needed fewer files than
the one before leaves the rest behind, so reading a whole folder counts dollars twice. For each
billing period the newest manifest decides.

Where no manifest is, somebody put the files together. All of them are the bill, so a file that may
hold lines of another one, or none that can be read, is refused by name: a total of half a bill
looks like any other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.ground.errors import InvalidInput, passed_on
from spark.files import Files, fingerprint
from spark.months import Refresh

MANIFEST_SUFFIX = "-Manifest.json"
PARQUET, ZIP = ".parquet", ".zip"
NO_FILES = 'The manifest {} names no files under "dataFiles".'
FORMATS = (PARQUET, ".csv.gz", f".csv{ZIP}", ".csv")
_PERIOD = re.compile(r"^(?:BILLING_PERIOD|billing_period)=(\d{4}-\d{2})$")
# Legacy CUR names its months 20261101-20261201.
_LEGACY_PERIOD = re.compile(r"^(\d{4})(\d{2})01-\d{8}$")


@dataclass(frozen=True, slots=True)
class Month:
    """The newest refresh of one billing period, and its files."""

    period: str
    manifest: str
    files: Sequence[str]
    refresh: Refresh
    simulated: bool


@dataclass(frozen=True)
class Export:
    """The pinned file lists of one export."""

    name: str
    months: Sequence[Month]
    # Periods whose manifests name no files: of a month without a charge there may be none.
    empty: Sequence[str] = ()

    @property
    def files(self) -> list[str]:
        return [file for month in self.months for file in month.files]

    @property
    def is_data_export(self) -> bool:
        """Say whether AWS's Data Exports made it, by what its months' folders are called."""
        parts = self.months[0].manifest.split("/")
        return any(_PERIOD.match(part) for part in parts)

    @property
    def simulated(self) -> bool:
        return any(month.simulated for month in self.months)


def pinned(files: Files, folder: str, months: Collection[str] = ()) -> Export:
    """Return the data files of an export's folder, of these months or of all.

    Raises InvalidInput for a folder without manifests, a manifest that cannot be read, one that
    names no files, a file that is not there, two exports or two formats in one folder, or a month
    that was never delivered.
    """
    if not files.is_folder(folder):
        raise InvalidInput([f"The export {folder} is not a folder; name the export's own."])
    own, newest = _newest_by_period(files, folder)
    _require_months(folder, newest, months)
    chosen = {p: path for p, path in sorted(newest.items()) if not months or p in months}
    problems: list[str] = []
    versions = files.versions(own)
    delivered = [_month(files, own, p, path, versions, problems) for p, path in chosen.items()]
    kinds = {_format(file) for month in delivered for file in month.files}
    if "" in kinds or len(kinds) > 1:
        problems.append(
            f"The export {folder} mixes file formats; choose Parquet, or csv with gzip, for the "
            f"whole export."
        )
    if problems:
        raise InvalidInput(problems)
    filled = [month for month in delivered if month.files]
    _require_files([month.manifest for month in delivered], filled)
    return Export(
        name=_name(delivered[0].manifest),
        months=tuple(filled),
        empty=[month.period for month in delivered if not month.files],
    )


def refreshes(files: Files, folder: str) -> tuple[str, dict[str, Refresh]]:
    """Return an export's name, and each month's newest refresh; of some no file may be named.

    Those that are need not be there: those of a month that nobody reads may be gone.
    """
    own, newest = _newest_by_period(files, folder)
    versions = files.versions(own)
    found = {}
    for period, path in newest.items():
        manifest = _manifest(files, path)
        places = [_below_export(files, own, name) for name in _data_files(manifest)]
        found[period] = _refresh(manifest, versions, own, [each or "" for each in places])
    _require_files(list(newest.values()), [each for each in found.values() if each.files])
    return _name(min(newest.values())), found


def _newest_by_period(files: Files, folder: str) -> tuple[str, dict[str, str]]:
    """Return the export's own folder, and each month's newest manifest.

    That is the last in order, since a refresh's folder is a time.

    Legacy CUR names a refresh's folder by chance, but keeps a copy of the newest manifest above
    them, which is the shorter address; without it nothing says which refresh is the newest.
    """
    newest: dict[str, str] = {}
    legacy: dict[str, list[str]] = {}
    deliveries = files.below(folder, MANIFEST_SUFFIX)
    _require_one_way(folder, deliveries)
    names: list[str] = []
    for path in deliveries:
        # The folder nearest to the manifest: what an export lies in may be called so as well.
        parts = path.split("/")[::-1]
        modern = next((m[1] for part in parts if (m := _PERIOD.match(part))), None)
        month = next((m for part in parts if (m := _LEGACY_PERIOD.match(part))), None)
        if modern is not None or month is not None:
            names.append(path)
        if modern is not None:
            newest[modern] = path
        elif month is not None:
            legacy.setdefault(f"{month[1]}-{month[2]}", []).append(path)
    own = _own_folder(folder, names)
    _require_nothing_beside(files, folder, own)
    newest |= {period: _above(folder, period, paths) for period, paths in legacy.items()}
    if not newest:
        problem = (
            f"The export {folder} has no manifest under metadata/BILLING_PERIOD=YYYY-MM/ (legacy: "
            f"YYYYMMDD-YYYYMMDD/); name the folder that holds data/ and metadata/."
        )
        raise InvalidInput([problem])
    return own, newest


def _above(folder: str, period: str, paths: Sequence[str]) -> str:
    """Return the manifest of a legacy report's month that stands above all others of it."""
    first, *others = sorted(paths, key=lambda path: path.count("/"))
    if others and others[0].count("/") == first.count("/"):
        problem = (
            f"The report {folder} has {period} twice ({first}, {others[0]}), and no manifest says "
            "which is the newest; copy the whole report again, or keep one."
        )
        raise InvalidInput([problem])
    return first


def _own_folder(folder: str, manifests: Sequence[str]) -> str:
    """Return the folder that an export's manifests stand in, the named one or one below it.

    Refuses two exports, or two copies of one: of a month that both have one would be read.
    """
    names = sorted({_name(path) for path in manifests})
    if len(names) > 1:
        raise InvalidInput(
            [f"The folder {folder} holds {len(names)} exports, {', '.join(names)}; name one's own."]
        )
    places = sorted({_export_of(path) for path in manifests})
    if len(places) > 1:
        twice = " and ".join(places)
        raise InvalidInput([f"The folder {folder} holds an export twice, {twice}; name one."])
    own = next(iter(places), folder)
    if own != folder and folder.startswith(f"{own}/"):
        raise InvalidInput([f"{folder} is a part of an export; name {own}, the whole of it."])
    return own


def _require_nothing_beside(files: Files, folder: str, own: str) -> None:
    """Refuse a folder of an export and of other bills, which no manifest would have read."""
    below = files.below(folder, "") if own != folder else []
    beside = [path for path in below if path.endswith(FORMATS) and not path.startswith(f"{own}/")]
    if beside:
        problem = (
            f"The folder {folder} holds the export {own} and other data ({beside[0]}); name one of "
            "them."
        )
        raise InvalidInput([problem])


def _export_of(manifest: str) -> str:
    """Return the folder of the export that a manifest describes a month of."""
    parts = manifest.split("/")
    month = max(i for i, p in enumerate(parts) if _PERIOD.match(p) or _LEGACY_PERIOD.match(p))
    return "/".join(parts[: month - (parts[month - 1] == "metadata")])


def _require_one_way(folder: str, deliveries: Sequence[str]) -> None:
    """Refuse a month that was both overwritten and kept by refresh: neither says which is newer."""
    overwritten, kept = {}, {}
    for path in deliveries:
        *above, place, _ = path.split("/")
        if month := _PERIOD.match(place):
            overwritten[month[1]] = path
        elif above and (month := _PERIOD.match(above[-1])):
            kept[month[1]] = path
    for period in sorted(overwritten.keys() & kept.keys()):
        problem = (
            f"The export {folder} has {period} twice: overwritten in place ({overwritten[period]}) "
            f"and in a folder for each refresh ({kept[period]}), as after its overwrite setting "
            f"was changed. Remove the manifest of the older way."
        )
        raise InvalidInput([problem])


def _require_months(folder: str, newest: Mapping[str, str], months: Collection[str]) -> None:
    absent = sorted(set(months) - set(newest))
    if absent:
        problem = (
            f"The export {folder} has no delivery of {', '.join(absent)}; it has "
            f"{', '.join(sorted(newest))}."
        )
        raise InvalidInput([problem])


def _month(
    files: Files,
    folder: str,
    period: str,
    path: str,
    versions: Mapping[str, str],
    problems: list[str],
) -> Month:
    manifest = _manifest(files, path)
    found = []
    for name in _data_files(manifest):
        address = _below_export(files, folder, name)
        if address is None:
            problems.append(f"The manifest {path} names {name}, which is not below data/.")
        elif not files.is_file(address):
            problems.append(
                f"The manifest {path} names {name}, which is not in the folder; the delivery is "
                f"not complete, so copy the whole export again."
            )
        else:
            found.append(address)
    simulated = manifest.get("simulated") is True
    refresh = _refresh(manifest, versions, folder, found)
    return Month(period, path, tuple(dict.fromkeys(found)), refresh, simulated)


def _data_files(manifest: Mapping[str, Any]) -> list[str]:
    """Return the data files that a manifest names, each once."""
    return list(dict.fromkeys(manifest.get("dataFiles") or manifest.get("reportKeys") or []))


def _refresh(
    manifest: Mapping[str, Any], versions: Mapping[str, str], folder: str, places: Sequence[str]
) -> Refresh:
    execution = str(manifest.get("executionId") or manifest.get("assemblyId") or "")
    own = list(dict.fromkeys(places))
    return Refresh(execution, len(own), fingerprint(versions, folder, own))


def _manifest(files: Files, path: str) -> Mapping[str, Any]:
    try:
        manifest = json.loads(files.read(path).decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InvalidInput(
            [passed_on(f"The manifest {path} is not JSON; copy the export again.", error)]
        ) from None
    fields = manifest if isinstance(manifest, dict) else {}
    names = fields.get("dataFiles", fields.get("reportKeys"))
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise InvalidInput([NO_FILES.format(path)])
    return fields


def _require_files(manifests: Sequence[str], filled: Collection[object]) -> None:
    """Refuse an export of which no manifest names a file."""
    if not filled:
        raise InvalidInput([NO_FILES.format(manifests[-1])])


def _below_export(files: Files, folder: str, name: str) -> str | None:
    """Return where a file that a manifest names is in the folder at hand, or None for elsewhere.

    Data Exports name it s3://bucket/prefix/export/data/BILLING_PERIOD=.../file, legacy CUR by its
    key, which has the month as a folder: 20261101-20261201, or year=2026/month=11.
    """
    parts = [part for part in name.split("/") if part]
    if ".." in parts:
        return None
    month = max((i for i, part in enumerate(parts) if _PERIOD.match(part)), default=None)
    if month is not None:
        starts = [i for i, part in enumerate(parts[:month]) if part == "data"]
        return f"{folder}/{'/'.join(parts[starts[-1] :])}" if starts else None
    first = next(
        (i for i, p in enumerate(parts) if _LEGACY_PERIOD.match(p) or p.startswith("year=")), None
    )
    if first is None:
        return None
    # A Parquet report stands in a folder of its own name beside the months' manifests.
    nested = f"{folder}/{'/'.join(parts[max(0, first - 1) :])}"
    return nested if files.is_file(nested) else f"{folder}/{'/'.join(parts[first:])}"


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1].removesuffix(MANIFEST_SUFFIX)


def _format(file: str) -> str:
    return next((suffix for suffix in FORMATS if file.endswith(suffix)), "")


LOOSE_FORMATS = (PARQUET, ".csv.gz", ZIP, ".csv")
# What holds data and cannot be read: other archives and formats, endings in capitals, the parts
# without an ending that Athena, Redshift and Spark write, and bills under an ending more (.csv.old)
# that is no checksum's.
UNREAD = re.compile(
    r"(?i)(\.(csv|tsv|parquet|parq|pq|orc|avro|jsonl|xlsx?|gz|zip|bz2|zst|zstd|xz|lz4|snappy|7z|tar|tgz)"
    r"|(^|/)(part|data|\d)[^./]*|\.(csv|gz|zip|parquet)\.(?!md5|sha|crc|asc|sig)[^./]+)$"
)
# What tells a table whose log says which of its files still count: others are of rows that were
# deleted or written again.
TABLE_LOG = re.compile(r"/(_delta_log/[^/]+\.json|metadata/[^/]+\.metadata\.json|\.hoodie/.*)$")
OF_A_TABLE = (
    "{} is a table of Delta Lake, Iceberg or Hudi, or a part of one: its log alone says which of "
    "its files are the bill. Write its rows to a folder of their own, as a query's result, and "
    "name that."
)
# A folder that says what the files in it do not, as Spark partitions a table by days: the same
# lines are others in another one. Months are in the lines as well.
SAYING = re.compile(r"(?i)^(?!billing_period=|year=|month=)[^=]+=")
# What AWS writes beside an Athena report: how far its newest delivery is.
STATUS = "cost_and_usage_data_status"


def unlisted(files: Files, folder: str) -> list[str]:
    """Return the data files of a folder that no manifest describes; none where one does.

    Raises InvalidInput for the data folder of an export, for a table that keeps a log, for files of
    more than one format or of none that can be read, and for files that hold the same or have one
    name in two folders of the same month, as refreshes of it have.
    """
    if not files.is_folder(folder) or files.below(folder, MANIFEST_SUFFIX):
        return []
    export = _export_above(files, folder)
    if export is not None:
        problem = (
            f"{folder} is the data of an export; name {export}, whose manifests say which of its "
            f"files are the bill."
        )
        raise InvalidInput([problem])
    there = files.below(folder, "")
    _require_no_table(files, folder, there)
    everything = [path for path in there if _is_data(path, folder)]
    kinds = [kind for kind in LOOSE_FORMATS if any(path.endswith(kind) for path in everything)]
    paths = [path for kind in kinds for path in everything if path.endswith(kind)]
    for problem in _problems(files, folder, kinds, paths, everything):
        raise InvalidInput([f"The folder {folder} has no manifest, and {problem}"])
    return paths


def _problems(
    files: Files, folder: str, kinds: Sequence[str], paths: Sequence[str], there: Sequence[str]
) -> Iterator[str]:
    """Yield why the data files of a folder may be less or more than one bill."""
    if len(kinds) > 1:
        yield f"mixes {', '.join(kinds)}; name one file, or a folder of one format."
    for path in sorted({each for each in there if UNREAD.search(each)}.difference(paths)):
        yield (
            f"holds {path}, which may be part of the bill and cannot be read. Copy it again if its "
            f"copy was broken off. Else write it as one of {', '.join(LOOSE_FORMATS)}, or take it "
            "out."
        )
    yield from _named_twice(paths)
    yield from _copied(files, folder, paths)


def _require_no_table(files: Files, folder: str, there: Sequence[str]) -> None:
    """Refuse a table of a format that keeps a log, also where its data folder alone is named."""
    above = folder.removesuffix("/data")
    beside = files.below(f"{above}/metadata", ".json") if above != folder else []
    if any(TABLE_LOG.search(path) for path in (*there, *beside)):
        raise InvalidInput([OF_A_TABLE.format(folder)])


def _export_above(files: Files, folder: str) -> str | None:
    """Return the folder of the export whose data this is, or is below; None of any other."""
    parts = folder.split("/")
    for place in [n for n, part in enumerate(parts) if part == "data"][::-1]:
        export = "/".join(parts[:place])
        metadata = f"{export}/metadata"
        if files.is_folder(metadata) and files.below(metadata, MANIFEST_SUFFIX):
            return export
    return None


def _is_data(path: str, folder: str) -> bool:
    """Say whether a file is none of those that writers leave beside data (_SUCCESS, .part.crc)."""
    parts = path[len(folder) :].split("/")
    return STATUS not in parts and not any(part.startswith((".", "_")) for part in parts)


def _named_twice(paths: Sequence[str]) -> Iterator[str]:
    """Name two files of one name in two folders of the same month."""
    again: dict[tuple[str, str], str] = {}
    for path in paths:
        place, name = path.rsplit("/", 1)
        month = "/".join(part for part in place.split("/") if "=" in part)
        other = again.setdefault((month, name), path)
        if other != path:
            yield (
                f"holds {name} twice for one month ({other}, {path}); name one delivery's folder, "
                f"or give the parts of one bill names of their own."
            )


def _copied(files: Files, folder: str, paths: Sequence[str]) -> Iterator[str]:
    """Name two files of the same bytes, as copies are; a header alone several may hold.

    Folders that say what no file does (SAYING) hold lines of their own.
    """
    sizes, held = files.versions(folder), dict[object, str]()
    alike: dict[object, list[str]] = {}
    for path in paths:
        said = tuple(part for part in path.split("/")[:-1] if SAYING.match(part))
        alike.setdefault((said, sizes[path].partition("-")[0]), []).append(path)
    for known, several in alike.items():
        for path in several if len(several) > 1 else ():
            data = files.read(path)
            if not data or (path.endswith(".csv") and data.count(b"\n") < 2):
                continue
            other = held.setdefault((known, hashlib.sha256(data).digest()), path)
            if other != path:
                yield f"{other} and {path} hold the same; take one of them out."
