"""`stillwater report --warehouse`: the report's tables as Iceberg, in a folder of this machine.

Every run is a snapshot of each table, so that last week's figures can be asked for again. Spark's
own package brings no Iceberg: its jar is the one that is named, or the one that Maven fetches.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from core.errors import InvalidInput, StillwaterError

# As spark.entry names it: a catalog, and the namespace in it.
NAMESPACE = "stillwater.report"
_NAMESPACE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*$")
_CLASS = "org/apache/iceberg/spark/SparkCatalog.class"


@dataclass(frozen=True, kw_only=True)
class Warehouse:
    """A folder of Iceberg tables, what they are called in SQL, and whose jar reads them."""

    folder: Path
    namespace: str
    jar: Path

    @property
    def catalog(self) -> str:
        return self.namespace.partition(".")[0]

    def settings(self) -> dict[str, str]:
        """Return what a Spark session is started with."""
        from local.spark import iceberg  # noqa: PLC0415 - of the twin

        return iceberg.settings(self.jar, self.folder.resolve().as_uri(), self.catalog)

    def catalog_settings(self) -> dict[str, str]:
        """Return those of them that may be set at any time: all but the jar."""
        from local.spark import iceberg  # noqa: PLC0415 - of the twin

        return {key: value for key, value in self.settings().items() if key != iceberg.JARS}


def chosen_warehouse(folder: str | None, namespace: str, jar: Path | None) -> Warehouse | None:
    """Return the warehouse that a command line names, or None for plain Parquet.

    Raises InvalidInput for a name, a place or a jar that is none, StillwaterError where no jar is
    at hand.
    """
    if folder is None:
        if jar is not None or namespace != NAMESPACE:
            problem = "--namespace and --iceberg-jar belong to --warehouse FOLDER; name it as well."
            raise InvalidInput([problem])
        return None
    if urlsplit(folder).scheme:
        problem = (
            f"--warehouse {folder} is no folder of this machine, which is where this Spark writes; "
            f"the job on EMR keeps Iceberg tables in S3 and Glue."
        )
        raise InvalidInput([problem])
    if not _NAMESPACE.match(namespace):
        problem = f"--namespace {namespace} is not CATALOG.NAMESPACE, such as {NAMESPACE}."
        raise InvalidInput([problem])
    return Warehouse(folder=Path(folder), namespace=namespace, jar=_jar(jar))


def _jar(named: Path | None) -> Path:
    # Maven's way to a jar is the twin's; a report into Parquet does without it.
    from local.spark import iceberg  # noqa: PLC0415

    if named is not None:
        if not _holds_iceberg(named):
            problem = (
                f"--iceberg-jar {named} is not Iceberg's jar for Spark; name the file "
                f"{iceberg.JAR}, or leave the option out, and Maven fetches it."
            )
            raise InvalidInput([problem])
        return named.resolve()
    try:
        return iceberg.jar()
    except StillwaterError as error:
        raise StillwaterError(
            f"Iceberg's jar for Spark is not at hand, and could not be fetched: {error}\nName it "
            f"with --iceberg-jar FILE ({iceberg.JAR}), or leave --warehouse out: the tables are "
            f"Parquet then."
        ) from None


def _holds_iceberg(jar: Path) -> bool:
    try:
        with zipfile.ZipFile(jar) as archive:
            return _CLASS in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
