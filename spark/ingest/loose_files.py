"""Lists the data files of a folder that no manifest describes: somebody put them together.

All of them are the bill, so a file that may hold lines of another one, or none that can be read, is
refused by name: a total of half a bill looks like any other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from core.ground.errors import InvalidInput
from spark.files import Files
from spark.ingest.manifest import MANIFEST_SUFFIX, PARQUET, ZIP

FORMATS = (PARQUET, ".csv.gz", ZIP, ".csv")
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
    kinds = [kind for kind in FORMATS if any(path.endswith(kind) for path in everything)]
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
            f"copy was broken off. Else write it as one of {', '.join(FORMATS)}, or take it out."
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
