"""Links of the pages lead somewhere, and whoever is paged finds the page's key in a runbook."""

import ast
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from core.incidents.actions import runbook
from core.incidents.record import State
from tests import pictures
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


SOURCES = [
    path
    for package in ("core", "handlers")
    for path in sorted((markdown.REPOSITORY / package).rglob("*.py"))
]
RUNBOOKS = sorted((markdown.REPOSITORY / "docs" / "runbooks").glob("*.md"))
SIDE_EXITS = (State.RIDDEN_THROUGH, State.CANCELLED, State.RETAINED, State.LOST)


def keys(source: str) -> Iterator[str]:
    """Yield the keys of the pages a module sends.

    They stand in `Page(key, ...)`, in `retain(incident, key, ...)`, and in a log line's `page=`.
    What names an object, as budget:NAME does, is found by what stands before the name.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        place = {"Page": 0, "retain": 1}.get(name)
        values = [] if place is None else node.args[place : place + 1]
        values += [k.value for k in node.keywords if k.arg in ("page", "key") and place is not None]
        values += [k.value for k in node.keywords if k.arg == "page" and place is None]
        yield from (word for value in values for word in _words(value))


def _words(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.JoinedStr):
        value = value.values[0]
    if isinstance(value, ast.IfExp):
        yield from _words(value.body)
        yield from _words(value.orelse)
    elif isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value


@functools.cache
def sent() -> Sequence[str]:
    return sorted({key for path in SOURCES for key in keys(path.read_text())})


@functools.cache
def _spans() -> set[str]:
    return {span for page in RUNBOOKS for span in markdown.spans(page)}


@every_case("key", sent)
def test_every_page_has_its_runbook_of_one_screen(key: str) -> None:
    page = markdown.REPOSITORY / runbook(key, "docs/runbooks")
    lines = page.read_text().splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    assert lines[0].startswith(f"# `{page.stem}`: ")
    assert headings == ["## Look", "## Do", "## Fixed when"]
    assert len(lines) < 40


@every_case("state", SIDE_EXITS, ids=lambda state: state.value)
def test_every_side_exit_is_explained(state: State) -> None:
    assert state.value in _spans()


def test_keys_are_found_however_they_are_written() -> None:
    source = """
def decide(page):
    stay(incident, policy, reason, Page("one", reason))
    retain(incident, "two", reason)
    Page(f"three:{name}", reason)
    Page("four" if late else "five", reason)
    logger.critical(reason, page="six")
    logger.critical(reason, page=key)
"""
    assert sorted(keys(source)) == ["five", "four", "one", "six", "three:", "two"]


def test_the_search_finds_what_the_loop_sends() -> None:
    assert {"hold_limit", "no_capacity", "zone_lost", "budget:"} <= set(sent())


@every_case(("name", "drawn"), pictures.diagrams().items(), ids=list(pictures.diagrams()))
def test_the_diagrams_are_those_that_make_pictures_draws(name: str, drawn: str) -> None:
    assert (pictures.IMAGES / f"{name}.svg").read_text() == drawn, "run `make pictures`"
