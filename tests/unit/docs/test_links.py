"""Every link inside the project leads somewhere, and every page can be reached from the README."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.every_case import every_case
from tests.unit.docs import markdown

_ELSEWHERE = ("http://", "https://", "mailto:")


def _target(page: Path, link: str) -> tuple[Path, str]:
    path, _, anchor = link.partition("#")
    return ((page.parent / path).resolve() if path else page), anchor


def _internal(page: Path) -> list[str]:
    return [link for link in markdown.links(page) if not link.startswith(_ELSEWHERE)]


@every_case("page", markdown.PAGES, ids=markdown.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in _internal(page):
        target, anchor = _target(page, link)
        assert target.exists(), f"{link}: there is no such file"
        assert target.is_relative_to(markdown.REPOSITORY), f"{link}: outside of the project"
        if anchor:
            assert anchor in markdown.anchors(target), f"{link}: there is no such heading"


def test_every_page_is_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [markdown.REPOSITORY / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        for link in _internal(page):
            target, _ = _target(page, link)
            # A folder is shown as the list of what is in it.
            found = sorted(target.glob("*.md")) if target.is_dir() else [target]
            waiting += [each for each in found if each.suffix == ".md"]
    unreached = [markdown.name(page) for page in markdown.PAGES if page not in seen]
    assert not unreached


def test_every_page_that_the_site_names_is_there() -> None:
    site = yaml.safe_load((markdown.REPOSITORY / "mkdocs.yml").read_text())
    named = [page for road in site["nav"] for pages in road.values() for page in _listed(pages)]
    assert all((markdown.REPOSITORY / "docs" / page).is_file() for page in named)


def _listed(pages: str | list[str]) -> list[str]:
    return [pages] if isinstance(pages, str) else pages


def test_an_anchor_is_what_github_makes_of_a_heading(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b_c`: d, e\n```\n# no heading\n```\n## Twice\n## Twice\n## pools[].volumes[]\n"
    )
    assert markdown.anchors(page) == {"a-b_c-d-e", "twice", "twice-1", "poolsvolumes"}


# What a reader in need looks for, by words of the README's link or of its sentence.
SOUGHT = {
    "stuck in Terminating": "docs/runbooks/held-or-retained.md",
    "Install": "docs/how-to/install.md",
    "Adopt a cluster": "docs/how-to/adopt.md",
    "Uninstall": "docs/how-to/uninstall.md",
    "Upgrade": "docs/how-to/upgrade.md",
    "what Stillwater itself costs": "docs/how-to/cost-of-stillwater.md",
    "Production ready": "docs/never-seen-on-aws.md",
    "How each version was tested": "docs/reference/supported-versions.md",
}


@every_case(("words", "page"), SOUGHT.items(), ids=list(SOUGHT))
def test_what_a_reader_looks_for_is_one_click_away(words: str, page: str) -> None:
    lines = (markdown.REPOSITORY / "README.md").read_text().splitlines()
    assert any(words in line and f"({page})" in line for line in lines)
