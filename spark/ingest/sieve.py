"""Drops, while lines are still columns, the resources and tags that surely are not Kafka's.

A first, coarse sieve: it keeps whatever may be Kafka's, and spark.rules.line says what is. Of
the rest nothing but what was bought and by whom is told apart, so that a bill with a resource on
every line is as small, once it is added up, as one with few.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same

from spark.ingest.layout import Layout
from spark.tag_keys import CLAIM_TAG, all_spellings

Flags = np.ndarray[Any, np.dtype[np.bool_]]


def sieved_lines(lines: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """Return the lines without the resources and tags of those that are surely not Kafka's.

    Of the tags of the others those that are looked up stay.
    """
    kept = _may_be_kafkas(lines, layout)
    blank = pa.array(~kept)
    places = {layout.resource, layout.zone, *layout.own}
    looked_up = all_spellings(layout.kafka.keys)
    columns = {name: lines[name] for name in lines.schema.names}
    for name, column in columns.items():
        if pa.types.is_map(column.type):
            columns[name] = _thinned_maps(column, kept, looked_up)
        elif name in places:
            columns[name] = _without(column, blank)
    return pa.RecordBatch.from_pydict(columns)


def _may_be_kafkas(lines: pa.RecordBatch, layout: Layout) -> Flags:
    kafka, kept = layout.kafka, np.zeros(lines.num_rows, np.bool_)
    telling = all_spellings((kafka.cluster, kafka.pool, *([CLAIM_TAG] if kafka.claims else [])))
    for name in lines.schema.names:
        column = lines[name]
        if pa.types.is_map(column.type):
            kept |= _has_key(column, telling)
        elif name in telling:
            kept |= _is_filled(column)
        elif kafka.resources and name == layout.resource:
            known = pa.array(sorted(kafka.resources))
            kept |= _as_flags(pc.is_in(_plain(column), known))
    return kept


def _has_key(column: pa.MapArray, keys: frozenset[str]) -> Flags:
    """Say of each map whether it has one of these keys."""
    starts = np.asarray(column.offsets)
    found = _among(column.keys, keys)[starts[0] : starts[-1]]
    before = np.concatenate(([0], np.cumsum(found)))
    flags: Flags = before[starts[1:] - starts[0]] > before[starts[:-1] - starts[0]]
    return flags


def _thinned_maps(column: pa.MapArray, kept: Flags, keys: frozenset[str]) -> pa.MapArray:
    """Return the maps with these keys alone, and empty where a line is not kept."""
    starts = np.asarray(column.offsets)
    first, last = int(starts[0]), int(starts[-1])
    is_wanted = _among(column.keys, keys)[first:last] & np.repeat(kept, np.diff(starts))
    offsets = np.concatenate(([0], np.cumsum(is_wanted)))[starts - first]
    mask = pa.array(is_wanted)
    names = column.keys.slice(first, last - first).filter(mask)
    values = column.items.slice(first, last - first).filter(mask)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), names, values)


def _among(column: pa.Array, keys: frozenset[str]) -> Flags:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    known = np.array([key in keys for key in column.dictionary.to_pylist()], np.bool_)
    if not known.size:
        return np.zeros(len(column), np.bool_)
    flags: Flags = known[np.asarray(column.indices.fill_null(0))]
    return flags


def _is_filled(column: pa.Array) -> Flags:
    plain = _plain(column)
    return _as_flags(pc.and_kleene(plain.is_valid(), pc.not_equal(plain, "")))


def _as_flags(column: pa.Array) -> Flags:
    flags: Flags = np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)  # noqa: FBT003 - pyarrow's
    return flags


def _plain(column: pa.Array) -> pa.Array:
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def _without(column: pa.Array, blank: pa.Array) -> pa.Array:
    """Return a column with nothing where `blank` is set."""
    if pa.types.is_dictionary(column.type):
        indices = pc.if_else(blank, pa.scalar(None, column.indices.type), column.indices)
        return pa.DictionaryArray.from_arrays(indices, column.dictionary)
    return pc.if_else(blank, pa.scalar(None, column.type), column)
