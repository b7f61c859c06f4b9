"""What runs in the cluster is started by the installed package: nothing else finds its modules."""

from __future__ import annotations

import fnmatch
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from core.settings.codec import SETTINGS
from stillwater import inside
from stillwater.inside import PARTS
from tests.every_case import every_case

REPOSITORY = Path(__file__).resolve().parents[3]
STARTERS = ("Dockerfile", "infra/gate.py", "infra/kafka/probe.py")


@every_case("part", PARTS)
def test_every_part_is_a_module_that_can_be_run(part: str) -> None:
    found = importlib.util.find_spec(f"handlers.{part}")
    assert found is not None
    assert found.origin is not None
    assert '__name__ == "__main__"' in Path(found.origin).read_text()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_was_told_nothing_ends_with_a_sentence(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["inside", part])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv(SETTINGS, raising=False)
    with pytest.raises(SystemExit) as ended:
        inside.main()
    assert str(ended.value).startswith(f"{SETTINGS} ")


@every_case("starter", STARTERS)
def test_who_starts_one_names_the_package_that_the_wheel_holds(starter: str) -> None:
    said = (REPOSITORY / starter).read_text()
    assert '"-m", "stillwater.inside"' in said
    assert '"-m", "handlers' not in said


def test_every_image_but_one_is_named_by_its_content() -> None:
    text = (REPOSITORY / "Dockerfile").read_text()
    digests = dict(re.findall(r"^ARG (\w+)=\S+?(@sha256:[0-9a-f]{64})?$", text, re.MULTILINE))
    built_from = re.findall(r"^FROM \S+:\$\{(\w+)\}", text, re.MULTILINE)
    assert len(built_from) == text.count("\nFROM ") == 4
    # Its digest has not been read from the registry yet; the Dockerfile says how.
    assert {each for each in built_from if not digests[each]} <= {"PULUMI"}


def test_what_the_image_copies_is_not_kept_from_its_build() -> None:
    allowed = {
        line.removeprefix("!")
        for line in (REPOSITORY / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = {
        source
        for line in (REPOSITORY / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }
    assert len(copied) > 2
    left_out = [
        each
        for each in copied
        if not any(fnmatch.fnmatch(each.replace("*", "x"), pattern) for pattern in allowed)
    ]
    assert left_out == []
