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


def _from_fields(fields: Mapping[str, struct_pb2.Value]) -> Any:
    signature = fields[SIGNATURE_KEY].string_value if SIGNATURE_KEY in fields else None
    if signature is None:
        return {key: from_value(value) for key, value in fields.items()}
    if signature in {SECRET_SIGNATURE, OUTPUT_SIGNATURE}:
        # An output without a value is one that is not known yet.
        return from_value(fields["value"]) if "value" in fields else UNKNOWN
    content = {k: from_value(v) for k, v in fields.items() if k not in {SIGNATURE_KEY, "hash"}}
    if signature in {ASSET_SIGNATURE, ARCHIVE_SIGNATURE}:
        sha256 = fields["hash"].string_value if "hash" in fields else ""
        return Asset(signature == ARCHIVE_SIGNATURE, sha256, content)
    # A resource reference, from an engine that sends one regardless.
    return content.get("id") or content.get("urn")


def from_value(value: struct_pb2.Value) -> Any:
    """Return the plain Python value; whole numbers become int, as every API here wants them."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _from_fields(value.struct_value.fields)
    if kind == "list_value":
        return [from_value(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWN_MARKERS else value.string_value
    if kind == "bool_value":
        return value.bool_value
    return None


def from_struct(struct: struct_pb2.Struct) -> Properties:
    """Return a message's properties as plain Python."""
    return {key: from_value(value) for key, value in struct.fields.items()}


def _asset_fields(asset: Asset) -> Properties:
    signature = ARCHIVE_SIGNATURE if asset.is_archive else ASSET_SIGNATURE
    return {SIGNATURE_KEY: signature, "hash": asset.sha256, **asset.content}


def to_value(value: Any) -> struct_pb2.Value:
    """Return the engine's form of a plain value."""
    fields: dict[str, Any]
    if value is None:
        fields = {"null_value": struct_pb2.NULL_VALUE}
    elif isinstance(value, bool):
        fields = {"bool_value": value}
    elif isinstance(value, int | float):
        fields = {"number_value": value}
    elif isinstance(value, Asset):
        fields = {"struct_value": to_struct(_asset_fields(value))}
    elif isinstance(value, Mapping):
        fields = {"struct_value": to_struct(value)}
    elif isinstance(value, list | tuple | set | frozenset):
        items = [to_value(item) for item in value]
        fields = {"list_value": struct_pb2.ListValue(values=items)}
    else:
        fields = {"string_value": rpc.UNKNOWN if isinstance(value, UnknownValue) else str(value)}
    return struct_pb2.Value(**fields)


def to_struct(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """Return the engine's form of a resource's properties."""
    return struct_pb2.Struct(fields={str(k): to_value(v) for k, v in properties.items()})


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
