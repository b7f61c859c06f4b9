"""Says where the installed release came from, so that what is told to be installed is this one.

pip writes it down beside the package (PEP 610). The package that pypi.org has under the name
`stillwater` is another project's: a bare `pip install stillwater` is right only where this release
itself came from an index, which is then the reader's own.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAME = "stillwater"
TWIN = "stillwater_twin"
WHEELS = "wheels"


@dataclass(frozen=True, slots=True)
class Origin:
    """A release and what pip took it from: a file or an address, nothing for an index."""

    version: str
    url: str | None = None
    checkout: bool = False

    @property
    def wheel(self) -> str:
        """Return the name of its wheel's file."""
        named = "" if self.url is None else Path(urlsplit(self.url).path).name
        return named if named.endswith(".whl") else f"{NAME}-{self.version}-py3-none-any.whl"

    @property
    def path(self) -> Path | None:
        """Return the wheel or the checkout on this machine, where it came from one."""
        parts = urlsplit(self.url or "")
        return Path(unquote(parts.path)) if parts.scheme == "file" else None

    @property
    def kept_wheel(self) -> Path | None:
        """Return the wheel's file where it is still there."""
        path = self.path
        return path if path is not None and not self.checkout and path.is_file() else None

    @property
    def requirement(self) -> str:
        """Return the line of a requirements.txt that means this release, from its own folder."""
        if self.url is None:
            return f"{NAME}=={self.version}"
        return f"./{WHEELS}/{self.wheel}" if self.path else f"{NAME} @ {self.url}"

    def installing(self, extra: str) -> str:
        """Return the command that adds an extra to this very release, into this very Python."""
        if self.url is None:
            wanted = [f"{NAME}[{extra}]=={self.version}"]
        else:
            source = str(self.path or self.url)
            wanted = [f"{source}[{extra}]" if self.path else f"{NAME}[{extra}] @ {source}"]
            # The twin is a distribution beside it, and in no index either.
            if extra == "twin":
                beside = Path(source) / "local" if self.checkout else None
                wanted.append(str(beside or source.replace(f"/{NAME}-", f"/{TWIN}-")))
        pip = [sys.executable, "-m", "pip", "install"]
        if importlib.util.find_spec("pip") is None:
            pip = ["uv", "pip", "install", "--python", sys.executable]
        return shlex.join([*pip, *wanted])


def read() -> Origin:
    """Return where the release that runs came from."""
    found = importlib.metadata.distribution(NAME)
    return of(found.version, found.read_text("direct_url.json"))


def of(version: str, direct_url: str | None) -> Origin:
    """Return what pip wrote down; what it did not write down came from an index."""
    said = json.loads(direct_url) if direct_url else {}
    return Origin(version, said.get("url"), "dir_info" in said)
