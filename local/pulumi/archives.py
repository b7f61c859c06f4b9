"""The bytes of a deployment package, from the asset or archive the engine passed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from core.ground.errors import InvalidInput
from local.values import Asset

# The earliest date a zip can hold: the same sources make the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


def _file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(
            [f"Asset {path} cannot be read ({error.strerror}); build it before the update."]
        ) from None


def asset_bytes(asset: Asset) -> bytes:
    """Return the content of a single file."""
    if "text" in asset.content:
        return str(asset.content["text"]).encode()
    if "path" in asset.content:
        return _file(str(asset.content["path"]))
    raise InvalidInput(["Assets from a URI cannot be used in the twin; use a file."])


def _members(archive: Asset, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    if "path" in archive.content:
        root = Path(str(archive.content["path"]))
        if root.is_dir():
            for path in sorted(root.rglob("*")):
                if path.is_file():
                    yield prefix + path.relative_to(root).as_posix(), path.read_bytes()
            return
        with zipfile.ZipFile(io.BytesIO(_file(str(root)))) as source:
            for name in source.namelist():
                yield prefix + name, source.read(name)
        return
    for name, item in sorted((archive.content.get("assets") or {}).items()):
        if isinstance(item, Asset) and item.is_archive:
            yield from _members(item, f"{prefix}{name}/")
        elif isinstance(item, Asset):
            yield prefix + name, asset_bytes(item)


def zip_bytes(archive: Asset) -> bytes:
    """Return an archive as a zip; one that is a zip already is passed on as it is."""
    path = archive.content.get("path")
    if path and not Path(str(path)).is_dir():
        return _file(str(path))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in _members(archive):
            info = zipfile.ZipInfo(name, _DATE)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(info, content)
    return buffer.getvalue()
