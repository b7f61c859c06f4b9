"""Lists the data files of a folder that no manifest describes: somebody put them together.

All of them are the bill, so a file that may hold lines of another one, or none that can be read, is
refused by name: a total of half a bill looks like any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.ground.errors import InvalidInput
from spark.ingest import copies
from spark.ingest.files import Files
from spark.ingest.manifest import MANIFEST_SUFFIX, PARQUET, ZIP

FORMATS = (PARQUET, ".csv.gz", ZIP, ".csv")
# What holds data and cannot be read: other archives and formats, endings in capitals, the parts
# without an ending that Athena, Redshift and Spark write, and bills under an ending more (.csv.old)
# that is no checksum's.
UNREAD = re.compile(
    r"(?i)(\.(csv|tsv|parquet|parq|pq|orc|avro|jsonl|xlsx?|gz|zip|bz2|zst|zstd|xz|lz4|snappy|7z|tar|tgz)"
    r"|(^|/)(part|data|\d)[^./]*|\.(csv|gz|zip|parquet)\.(?!md5|sha|crc|asc|sig)[^./]+)$"
)
# What a copy that was broken off is called: by browsers, and by AWS's command line.
HALF = re.compile(
    r"(?i)\.(csv|gz|zip|parquet)\.((file)?part|partial|crdownload|download|te?mp"
    r"|(?=\d*[a-f])[0-9a-f]{8})$"
)
# What tells a table whose log says which of its files still count: others are of rows that were
# deleted or written again.
TABLES = {
    "Delta Lake": re.compile(r"/_delta_log/[^/]+\.json$"),
    "Iceberg": re.compile(r"/metadata/[^/]+\.metadata\.json$"),
    "Hudi": re.compile(r"/\.hoodie/"),
}
OF_A_TABLE = (
    "{} is a table of {}, or a part of one: its log alone says which of its files are the bill. "
    "Write its rows to a folder of their own, as a query's result, and name that."
)
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
    found = {kind: [path for path in everything if path.endswith(kind)] for kind in FORMATS}
    kinds = [kind for kind, paths in found.items() if paths]
    paths = [path for kind in kinds for path in found[kind]]
    read = set(paths)
    unread = [path for path in everything if path not in read and UNREAD.search(path)]
    problem = (
        _half_copied([path for path in everything if HALF.search(path)])
        or _of_two_kinds(kinds)
        or _in_no_form(unread)
        or _named_twice(paths)
        or copies.copied(files, paths)
    )
    if problem:
        raise InvalidInput([f"The folder {folder} has no manifest, and {problem}"])
    return paths


def _require_no_table(files: Files, folder: str, there: Sequence[str]) -> None:
    """Refuse a table of a format that keeps a log, also where its data folder alone is named."""
    above = folder.rpartition("/")[0] if folder.endswith("/data") else ""
    beside = files.below(f"{above}/metadata", ".json") if above else []
    for kind, log in TABLES.items():
        if any(log.search(path) for path in (*there, *beside)):
            raise InvalidInput([OF_A_TABLE.format(folder, kind)])


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


def _of_two_kinds(kinds: Sequence[str]) -> str:
    if len(kinds) < 2:
        return ""
    return f"mixes {', '.join(kinds)}; name one file, or a folder of one format."


def _half_copied(paths: Sequence[str]) -> str:
    return f"holds {paths[0]}, a copy that was broken off; copy the bill again." if paths else ""


def _in_no_form(unread: Sequence[str]) -> str:
    if not unread:
        return ""
    return (
        f"holds {unread[0]}, which may be part of the bill and cannot be read: write it as one of "
        f"{', '.join(FORMATS)}, or take it out."
    )


def _named_twice(paths: Sequence[str]) -> str:
    """Name two files of one name in two folders of the same month."""
    again: dict[tuple[str, str], str] = {}
    for path in paths:
        place, name = path.rsplit("/", 1)
        month = "/".join(part for part in place.split("/") if "=" in part)
        other = again.setdefault((month, name), path)
        if other != path:
            return (
                f"holds {name} twice for one month ({other}, {path}); name one delivery's folder, "
                f"or give the parts of one bill names of their own."
            )
    return ""
