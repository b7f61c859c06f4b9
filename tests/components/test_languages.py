"""The SDKs that `pulumi package add` makes for Go and TypeScript: type-checked, and run."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.engine.layers import Layers
from local import environment
from local.twin import Twin
from tests.components.examples import COMPONENTS, program_below

# npm fetches and compiles; Go compiles the whole SDK of Pulumi the first time.
pytestmark = pytest.mark.timeout(900)
GO_MOD = "module shop\n\ngo 1.25.0\n\nrequire github.com/pulumi/pulumi/sdk/v3 v3.220.0\n"
PACKAGE = {
    "name": "shop",
    "private": True,
    "main": "index.ts",
    "dependencies": {"@pulumi/pulumi": "3.220.0"},
    "devDependencies": {"@types/node": "^20", "typescript": "^5.9.0"},
}
COMPILED = {
    "compilerOptions": {
        "strict": True,
        "target": "es2022",
        "module": "commonjs",
        "moduleResolution": "node",
    },
    "files": ["index.ts"],
}


@dataclass(frozen=True)
class Language:
    """One language: the program's files, and what checks their types."""

    runtime: str
    heading: str
    block: str
    program: str
    files: Mapping[str, str]
    checks: Sequence[Sequence[str]]
    # What a wrong type is made of in the program, and what the check then says.
    wrong: tuple[str, str, str]


GO = Language(
    runtime="go",
    heading="In Go",
    block="go",
    program="main.go",
    files={"go.mod": GO_MOD},
    checks=(["go", "vet", "./..."], ["go", "build", "-o", "built", "."]),
    wrong=('Cluster:                 "shop-orders"', "Cluster: 5", "cannot use 5"),
)
TYPESCRIPT = Language(
    runtime="nodejs",
    heading="In TypeScript",
    block="typescript",
    program="index.ts",
    files={"package.json": json.dumps(PACKAGE), "tsconfig.json": json.dumps(COMPILED)},
    checks=(["node_modules/.bin/tsc", "--noEmit"],),
    wrong=('cluster: "shop-orders"', "cluster: 5", "TS2322"),
)


@dataclass
class Shop:
    """A project in one language, to which the package was added."""

    twin: Twin
    directory: Path
    language: Language

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.directory,
            env=self.twin.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )

    def must(self, *command: str) -> None:
        done = self.run(*command)
        assert done.returncode == 0, done.stdout

    @property
    def layers(self) -> Layers:
        config = {"aws:region": environment.REGION}
        return Layers(
            "test", self.twin.environment(), self.directory, layers=("shop",), config=config
        )


@pytest.fixture(params=[GO, TYPESCRIPT], ids=["go", "typescript"])
def shop(languages: Twin, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shop]:
    language: Language = request.param
    if language is TYPESCRIPT and shutil.which("npm") is None:
        pytest.skip("npm is not on the PATH: TypeScript is not tried")
    settings = {"name": "shop", "runtime": language.runtime}
    (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
    for name, content in language.files.items():
        (tmp_path / name).write_text(content)
    (tmp_path / language.program).write_text(program_below(language.heading, language.block))
    # The host keeps the schema beside the package: not in the repository, then.
    (tmp_path / "components").symlink_to(COMPONENTS)
    made = Shop(languages, tmp_path, language)
    made.must("pulumi", "package", "add", str(tmp_path / "components"))
    yield made
    made.layers.destroy()


def test_the_sdk_is_checked_and_its_program_comes_up_once_and_goes(shop: Shop, groups: Any) -> None:
    for check in shop.language.checks:
        shop.must(*check)
    (first,) = shop.layers.up()
    assert first.outputs["hookNames"] == ["drain", "gate"]
    assert groups() == [["drain", "gate"]] * 2
    (again,) = shop.layers.up()
    assert again.changed == 0
    shop.layers.destroy()
    assert groups() == [[], []]

    right, wrong, said = shop.language.wrong
    program = shop.directory / shop.language.program
    assert right in program.read_text()
    program.write_text(program.read_text().replace(right, wrong))
    refused = shop.run(*shop.language.checks[0])
    assert refused.returncode != 0
    assert said in refused.stdout
