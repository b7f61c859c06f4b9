"""The changelog: short releases, short lines, and no heading that a reader does not know."""

import re

from tests.unit.docs import markdown

NOTES = (markdown.REPOSITORY / "CHANGELOG.md").read_text()
RELEASES = re.split(r"^## ", NOTES, flags=re.MULTILINE)[1:]
MOST_LINES, MOST_WORDS = 40, 25


def test_a_release_is_at_most_forty_short_lines_under_known_headings() -> None:
    assert len(RELEASES) > 1
    for release in RELEASES:
        name, *lines = [line for line in release.splitlines() if line]
        entries = [line for line in lines if not line.startswith("### ")]
        assert re.fullmatch(r"Unreleased|\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", name)
        assert {*lines} - {*entries} <= {"### Breaking", "### Added", "### Fixed"}
        assert len(lines) <= MOST_LINES, f"{name} has {len(lines)} lines"
        long = [each for each in entries if len(each.split()) - 1 > MOST_WORDS]
        assert long == []
        assert all(each.startswith("- ") for each in entries)
