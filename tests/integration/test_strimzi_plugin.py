"""The plugin for Strimzi's operator, built by Maven against Strimzi's own interfaces."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.integration import strimzi_plugin

SERVICE = "META-INF/services/io.strimzi.plugin.gatekeeper.GatekeeperPlugin"


@pytest.fixture
def built() -> Path:
    home = strimzi_plugin.home()
    if not home.is_dir():
        pytest.skip("The plugin was not built: it takes Maven, its repository and a JDK of 21.")
    return home


def test_each_of_its_own_tests_passes(built: Path) -> None:
    reports = [
        ET.parse(path).getroot()  # noqa: S314 - written by our own build
        for path in (built / strimzi_plugin.REPORTS).glob("*.xml")
    ]
    cases = [case for report in reports for case in report.iter("testcase")]
    failed = {
        str(case.get("name"))
        for case in cases
        if {each.tag for each in case} & {"failure", "error", "skipped"}
    }
    written = sum(
        len(re.findall(r"@Test\b", source.read_text()))
        for source in strimzi_plugin.SOURCES.glob("src/test/**/*.java")
    )
    assert (failed, len(cases)) == (set(), written)


def test_the_jar_brings_its_own_classes_alone_and_names_the_plugin(built: Path) -> None:
    with zipfile.ZipFile(built / strimzi_plugin.JAR) as jar:
        classes = [name for name in jar.namelist() if name.endswith(".class")]
        named = jar.read(SERVICE).decode().strip()
    assert f"{named.replace('.', '/')}.class" in classes
    assert {Path(name).parent.as_posix() for name in classes} == {"dev/stillwater/strimzi"}
