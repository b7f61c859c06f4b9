"""Reads tags out of text: JSON as AWS delivers it, and what other tools make of a map in csv.

Every way is tried where the one before made nothing of the text; what no way reads is null, and the
report says so. No way guesses: a text of which a piece is no pair is not read at all.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

# Python marks a quote in quotes of the same kind by a backslash: 'it\\'s'.
_LENIENT = {"allowBackslashEscapingAnyCharacter": "true"}
# What Python writes for nothing and for truth, where no quote is around it.
_PYTHONS = r"(?<=[:,\[(]\s?)(?:None|True|False|nan)(?=\s*[,}\])])"
# A list of tuples, as pandas prints the map of a Parquet file: [('a', 'b'), ('c', None)].
_OPENS_TUPLE, _ENDS_TUPLE = r"\(\s*(?=['\"])", r"(?<=['\"]|null)\s*\)"
# Pairs without braces: "a": "b", "c": "d" of Azure, "a"=>"b" of Postgres.
_ARROW = r"\"\s*=>\s*(NULL\b)?"
_NESTED_LIST = r"^\[\s*\["
# A list may call a key and its value by any of these.
_KEYS = ("Key", "key", "TagKey", "tagKey", "tag_key", "Name", "name")
_VALUES = ("Value", "value", "TagValue", "tagValue", "tag_value")
# How Athena and DuckDB print a map, {a=b, c=d}: where the first key ends, and the next pair begins.
_PRINTED_MAP, _NEXT_PAIR = r"^\{[^\"'={}]+=.*\}$", ", (?=[^,={}]+=)"
# How Spark prints one: {a -> b, c -> d}.
_SPARKS, _SPARKS_ARROW = r"^\{[^\"'={}>]+ -> .*\}$", " -> "
# Pairs one after the other, every piece of the text one of them; by commas a value may hold one.
_KEY = r"[^=;|,{}\[\]\"']+="
_SEPARATED = {
    by: rf"^{_KEY}[^{by}]*(({by}\s*{_KEY}[^{by}]*)+{by}?|{by})\s*$" for by in (";", r"\|")
}
_BY_COMMAS, _COMMA = rf"^{_KEY}[^;|]*$", rf",\s*(?={_KEY})"


def map_of(written: Column) -> Column:
    """Return the tags that a text holds as a map, or null where it cannot be read."""
    return F.coalesce(
        _of_json(written), _of_json(_as_json(written)), _athena_map(_as_printed(written))
    )


def entries(pairs: Column) -> Column:
    """Return pairs as a map; of what stands twice the first counts, as of a tag in two columns."""
    first = F.filter(
        pairs,
        lambda pair, at: (
            pair["col1"].isNotNull() & (F.array_position(pairs["col1"], pair["col1"]) == at + 1)
        ),
    )
    return F.map_from_entries(first)


def _of_json(written: Column) -> Column:
    """Return the map of an object, of a list of keys and values, or of a list of pairs."""
    objects = F.from_json(written, "array<map<string,string>>", _LENIENT)
    listed = F.transform(objects, lambda tag: F.struct(_key(tag), _value(tag)))
    nested = F.from_json(written, "array<array<string>>", _LENIENT)
    pairs = F.transform(
        nested, lambda pair: F.struct(F.get(pair, 0).alias("col1"), F.get(pair, 1).alias("col2"))
    )
    return (
        F.when(written.rlike(_NESTED_LIST), _whole(pairs))
        .when(written.startswith("["), _whole(listed))
        .otherwise(F.from_json(written, "map<string,string>", _LENIENT))
    )


def _key(tag: Column) -> Column:
    """Return the key of a list's object: one by any of its names or, of one field, the field's."""
    named = F.coalesce(*(tag[name] for name in _KEYS))
    return F.when(F.size(tag) == 1, F.get(F.map_keys(tag), F.lit(0))).otherwise(named).alias("col1")


def _value(tag: Column) -> Column:
    named = F.coalesce(*(tag[name] for name in _VALUES))
    only = F.get(F.map_values(tag), F.lit(0))
    return F.when(F.size(tag) == 1, only).otherwise(named).alias("col2")


def _whole(pairs: Column) -> Column:
    """Return pairs as a map, or null where one of them has no key."""
    named = F.transform(pairs, lambda pair: F.struct(pair["col1"], pair["col2"]))
    return F.when(~F.exists(named, lambda pair: pair["col1"].isNull()), entries(named))


def _as_json(written: Column) -> Column:
    """Return as JSON what is nearly that: Python's, JSON within a string, pairs without braces."""
    in_string = F.get(F.from_json(F.concat(F.lit("["), written, F.lit("]")), "array<string>"), 0)
    in_braces = F.concat(F.lit("{"), F.regexp_replace(written, _ARROW, '":$1'), F.lit("}"))
    lowered = F.regexp_replace(in_braces, ":NULL", ":null")
    opened = F.regexp_replace(F.regexp_replace(written, _PYTHONS, "null"), _OPENS_TUPLE, "[")
    return (
        F.when(written.startswith('"{') | written.startswith('"['), in_string)
        .when(written.startswith('"'), lowered)
        .otherwise(F.regexp_replace(opened, _ENDS_TUPLE, "]"))
    )


def _as_printed(written: Column) -> Column:
    """Return as Athena prints a map what Spark prints, or pairs that stand one after the other."""
    printed = F.when(written.rlike(_SPARKS), F.replace(written, F.lit(_SPARKS_ARROW), F.lit("=")))
    for by, pattern in _SEPARATED.items():
        ended = F.regexp_replace(written, rf"\s*{by}?\s*$", "")
        apart = F.regexp_replace(ended, rf"\s*{by}\s*", ", ")
        printed = printed.when(written.rlike(pattern), F.concat(F.lit("{"), apart, F.lit("}")))
    by_commas = F.concat(F.lit("{"), F.regexp_replace(written, _COMMA, ", "), F.lit("}"))
    return printed.when(written.rlike(_BY_COMMAS), by_commas).otherwise(written)


def _athena_map(written: Column) -> Column:
    """Return the map that Athena printed, {a=b, c=d}; null for any other text."""
    inner = F.substring(written, F.lit(2), F.length(written) - 2)
    pairs = F.transform(
        F.split(inner, _NEXT_PAIR),
        lambda pair: F.struct(
            F.trim(F.substring_index(pair, "=", 1)).alias("col1"),
            F.regexp_replace(pair, "^[^=]*=", "").alias("col2"),
        ),
    )
    return F.when(written.rlike(_PRINTED_MAP), entries(pairs))
