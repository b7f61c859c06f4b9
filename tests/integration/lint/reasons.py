"""The one file of reasons for findings that stay."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("reasons.yaml")
# The check that failed, and the resource it failed for.
Finding = tuple[str, str]


def of(linter: str) -> Mapping[str, Mapping[str, str]]:
    """Return the reasons of one linter: check -> resource pattern -> reason."""
    read: Mapping[str, Mapping[str, Mapping[str, str]]] = yaml.safe_load(FILE.read_text())
    return read[linter]


def unexplained_findings(linter: str, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that no reason covers."""
    known = of(linter)
    return sorted(
        {
            (check, resource)
            for check, resource in findings
            if not any(fnmatchcase(resource, pattern) for pattern in known.get(check, {}))
        }
    )


def unused_reasons(linter: str, findings: Iterable[Finding]) -> list[Finding]:
    """Return the reasons, by check and pattern, that no finding needs."""
    found = set(findings)
    return sorted(
        (check, pattern)
        for check, patterns in of(linter).items()
        for pattern in patterns
        if not any(check == c and fnmatchcase(resource, pattern) for c, resource in found)
    )
