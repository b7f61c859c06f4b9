"""Words of another program reach a person after ours, on one line and cut: every place, walked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.ground.errors import LONGEST, one_line, passed_on
from spark.ingest.bill import complaint

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("core", "infra", "stacks", "spark", "cli", "stillwater")
# Errors whose words are our own sentences.
OURS = {
    *("StillwaterError", "InvalidInput", "MissingPrerequisite", "Conflict", "LayerFailed"),
    *("ApiError", "WheelsNotFetched", "LineByLine"),
}
# What makes another program's words one line that is not too long.
CUTS = {"passed_on", "one_line", "sentence", "out_of_reach", "complaint"}
# What a program that was run, or Java, says.
SPOKEN = {"stderr", "java_exception"}


def _names(node: ast.expr | None) -> Iterator[str]:
    """Yield what is named, of something in a module its own name."""
    for each in node.elts if isinstance(node, ast.Tuple) else [node]:
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def _is_cut(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Say whether words go through one of CUTS, or are compared and said to nobody."""
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.Compare):
            return True
        if isinstance(node, ast.Call) and set(_names(node.func)) & CUTS:
            return True
    return False


def _is_text(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Say whether an error is made text: in an f-string, or by str()."""
    parent = parents[node]
    in_call = isinstance(parent, ast.Call) and getattr(parent.func, "id", "") in {"str", "repr"}
    return in_call or isinstance(parent, ast.FormattedValue)


def raw_words(text: str) -> list[int]:
    """Return the lines that pass another program's words on as they are."""
    tree = ast.parse(text)
    parents = {child: each for each in ast.walk(tree) for child in ast.iter_child_nodes(each)}
    found = set()
    for handler in ast.walk(tree):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        if set(_names(handler.type)) <= OURS:
            continue
        for node in ast.walk(handler):
            is_error = isinstance(node, ast.Name) and node.id == handler.name
            if is_error and _is_text(node, parents) and not _is_cut(node, parents):
                found.add(node.lineno)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in SPOKEN and not _is_cut(node, parents):
            above: ast.AST = node
            while above in parents and not isinstance(above, ast.stmt):
                if _is_text(above, parents):
                    found.add(node.lineno)
                above = parents[above]
    return sorted(found)


@pytest.mark.parametrize(
    "place",
    [
        'try:\n    f()\nexcept OSError as error:\n    raise InvalidInput([f"no: {error}."])',
        "try:\n    f()\nexcept (A, Py4JJavaError) as error:\n    g(str(error).splitlines()[0])",
        'said = f"it answered {done.stderr.strip()!r}"',
        "reason = str(error.java_exception)",
    ],
)
def test_a_place_that_passes_words_on_raw_is_found(place: str) -> None:
    assert len(raw_words(place)) == 1


@pytest.mark.parametrize(
    "place",
    [
        'try:\n    f()\nexcept OSError as error:\n    g(passed_on("Mend it.", error))',
        'try:\n    f()\nexcept InvalidInput as error:\n    g(f"{error}")',
        'try:\n    f()\nexcept OSError as error:\n    if "x" in str(error):\n        g()',
        'said = f"it answered {one_line(done.stderr)}"',
    ],
)
def test_a_place_that_cuts_them_is_not(place: str) -> None:
    assert raw_words(place) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_place_passes_another_programs_words_on_as_they_are(package: str) -> None:
    found = [
        f"{module.relative_to(REPOSITORY)}:{line}"
        for module in sorted((REPOSITORY / package).rglob("*.py"))
        for line in raw_words(module.read_text())
    ]
    assert found == []


JAVA = "java.io.IOException: no\n" + "".join(
    f"\tat org.apache.hadoop.fs.Path{n}(Path.java:{n})\n" for n in range(300)
)


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (JAVA + "\t... 20 more\n", "java.io.IOException: no"),
        ("502 Bad Gateway: <!DOCTYPE html><html>" + "x" * 9000, "502 Bad Gateway"),
        (ValueError("a\n   b"), "a b"),
        (ValueError(), "ValueError"),
        ("x" * 9000, "x" * LONGEST + " ..."),
    ],
)
def test_words_are_one_line_without_pages_and_stacks(theirs: object, said: str) -> None:
    assert one_line(theirs) == said


def test_our_sentences_stand_before_theirs() -> None:
    assert passed_on("Copy it again.", OSError("gone.")) == (
        "Copy it again. In its own words: gone."
    )
    assert passed_on("Copy it again.", "") == "Copy it again."


def test_what_spark_says_of_a_bill_comes_after_what_to_do() -> None:
    said = complaint("The bill x", f"An error occurred.\n{JAVA}Caused by: {JAVA}")
    assert said.startswith("The bill x cannot be read by Spark. Copy it again, ")
    assert said.endswith("In its own words: java.io.IOException: no.")
