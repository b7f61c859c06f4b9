"""Property values between the engine's protocol buffers and plain Python, for every provider.

The engine marks what JSON cannot say with a signature key: assets, archives, secrets, references
to resources, outputs with dependencies. A provider of this package tells the engine that it takes
neither secrets nor references, so the engine opens both before it calls and marks the answer's
properties secret again by their names; only assets, archives and unknowns are left to represent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import struct_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from pulumi.runtime import rpc

Properties = dict[str, Any]

SIGNATURE_KEY = "4dabf18193072939515e22adb298388d"
ASSET_SIGNATURE = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE_SIGNATURE = "0def7320c3a5731c473e5ecbe6d01bc7"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a marker, not a secret
OUTPUT_SIGNATURE = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


class UnknownValue:
    """The value of a property that only the update itself will tell; seen in previews alone."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = UnknownValue()
_UNKNOWN_MARKERS = frozenset(
    {
        rpc.UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # boolean
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


@dataclass(frozen=True)
class Asset:
    """A file or an archive the program passed, as the engine describes it; equal when its hash is.

    `content` keeps the engine's fields: path, text, uri, or assets (name -> Asset).
    """

    is_archive: bool
    sha256: str
    content: Mapping[str, Any]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Asset) or self.is_archive != other.is_archive:
            return False
        if self.sha256 and other.sha256:
            return self.sha256 == other.sha256
        return self.content == other.content

    def __hash__(self) -> int:
        return hash((self.is_archive, self.sha256))


def _opened(value: Any) -> Any:
    """Return what the engine's JSON means; whole numbers become int, as every API here wants."""
    if isinstance(value, dict):
        return _opened_mapping(value)
    if isinstance(value, list):
        return [_opened(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return UNKNOWN if isinstance(value, str) and value in _UNKNOWN_MARKERS else value


def _opened_mapping(value: Mapping[str, Any]) -> Any:
    signature = value.get(SIGNATURE_KEY)
    if signature in {SECRET_SIGNATURE, OUTPUT_SIGNATURE}:
        # An output without a value is one that is not known yet.
        return _opened(value["value"]) if "value" in value else UNKNOWN
    content = {k: _opened(v) for k, v in value.items() if k != SIGNATURE_KEY}
    if signature in {ASSET_SIGNATURE, ARCHIVE_SIGNATURE}:
        return Asset(signature == ARCHIVE_SIGNATURE, content.pop("hash", ""), content)
    # A resource reference, from an engine that sends one regardless.
    return content if signature is None else content.get("id") or content.get("urn")


def from_struct(struct: struct_pb2.Struct) -> Properties:
    """Return a message's properties as plain Python."""
    return {key: _opened(value) for key, value in MessageToDict(struct).items()}


def _marked(value: Any) -> Any:
    """Return a value as the engine's JSON has it."""
    if isinstance(value, Asset):
        signature = ARCHIVE_SIGNATURE if value.is_archive else ASSET_SIGNATURE
        return _marked({SIGNATURE_KEY: signature, "hash": value.sha256, **value.content})
    if isinstance(value, Mapping):
        return {str(key): _marked(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_marked(item) for item in value]
    if isinstance(value, UnknownValue):
        return rpc.UNKNOWN
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def to_struct(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """Return the engine's form of a resource's properties."""
    return ParseDict(_marked(properties), struct_pb2.Struct())


def has_unknown(value: Any) -> bool:
    """Say whether a value is, or holds, something only the update will tell."""
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return isinstance(value, UnknownValue)


def without_assets(value: Any) -> Any:
    """Replace every asset by its hash: what a provider may safely keep in state.

    An archive left in a resource's outputs makes the engine look for its files at the next run,
    when they may be gone.
    """
    if isinstance(value, Asset):
        return f"sha256:{value.sha256}"
    if isinstance(value, Mapping):
        return {key: without_assets(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_assets(item) for item in value]
    return value
