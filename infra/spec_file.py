"""Reads a ClusterSpec's file and remembers where each of its keys stands.

YAML takes the last of two equal keys without a word; here the second is an error, as it is in a
JSON file. Source of a problem's line: the setting it is of, else the one its sentence names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from core.errors import InvalidInput, one_line
from infra import spec_yaml

Path_ = tuple[str | int, ...]
_WORD = re.compile(r"[A-Za-z0-9_](?:[\w.*/-]*[A-Za-z0-9_*])?")
_KINDS: Mapping[type, str] = {list: "a list", int: "a number", float: "a number"}
_POOL = re.compile(r"[Pp]ools? (\S+?)[,.:;]?(?: \(|$| )")


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A line and a column, as an editor counts them: from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class SpecFile:
    """What a file holds, and where."""

    path: Path
    content: Mapping[str, object]
    places: Mapping[Path_, FilePlace] = field(default_factory=dict)
    # The text of each value that is one.
    values: Mapping[Path_, str] = field(default_factory=dict)

    def locate(self, place: Sequence[object], sentence: str) -> str:
        """Return `FILE:LINE:COLUMN: ` of a problem, or as much of it as can be known."""
        found = (
            self._deepest(place) if place else self._place_named(sentence) or self.places.get(())
        )
        return f"{self.path}: " if found is None else f"{self.path}:{found.line}:{found.column}: "

    def with_place(self, sentence: str) -> str:
        """Return a sentence behind the place of the setting it names."""
        return self.locate((), sentence) + sentence

    def _deepest(self, place: Sequence[object]) -> FilePlace | None:
        known = tuple(part for part in place if isinstance(part, str | int))
        for length in range(len(known), -1, -1):
            if known[:length] in self.places:
                return self.places[known[:length]]
        return None

    def _place_named(self, sentence: str) -> FilePlace | None:
        words = list(dict.fromkeys(_WORD.findall(sentence)))
        pool = self._pool(sentence)
        compound = [word for word in words if "_" in word or "." in word]
        for word in compound:
            found = self._of_key(word, pool)
            if found is not None:
                return self._item(found, words) or self.places[found]
        return (
            self._of_value(words)
            or (self.places[pool] if pool is not None else None)
            or self._place_spelled(sentence)
            or self._first(words)
        )

    def _of_value(self, words: Sequence[str]) -> FilePlace | None:
        for word in words:
            for path, value in self.values.items():
                if value == word and len(word) > 3 and any(c in word for c in "-./0123456789"):
                    return self.places[path]
        return None

    def _first(self, words: Sequence[str]) -> FilePlace | None:
        found = (self._of_key(word, None) for word in words)
        return next((self.places[each] for each in found if each is not None), None)

    def _place_spelled(self, sentence: str) -> FilePlace | None:
        """Return the place of a key that is no word, or of a topic or user that is named."""
        for path, place in self.places.items():
            key = path[-1] if path else ""
            if isinstance(key, str) and not key.isidentifier() and _says(sentence, key):
                return place
        for path, value in self.values.items():
            if path[0] in {"topics", "users"} and path[2:] == ("name",) and _says(sentence, value):
                return self.places[path[:2]]
        return None

    def _pool(self, sentence: str) -> Path_ | None:
        named = set(_POOL.findall(sentence))
        for path, value in self.values.items():
            if len(path) == 3 and path[0] == "pools" and path[2] == "name" and value in named:
                return path[:2]
        return None

    def _of_key(self, word: str, pool: Path_ | None) -> Path_ | None:
        wanted = tuple(word.split("."))
        found = [path for path in self.places if _keys(path)[-len(wanted) :] == wanted]
        of_pool = [path for path in found if pool is not None and path[: len(pool)] == pool]
        return next(iter(of_pool or found), None)

    def _item(self, of: Path_, words: Sequence[str]) -> FilePlace | None:
        """Return the place of the item of a list that the words name."""
        for path, value in self.values.items():
            if len(path) > len(of) and path[: len(of)] == of and value in words:
                return self.places[path]
        return None


def _says(sentence: str, name: str) -> bool:
    return f" {name} " in sentence or f" {name}, " in sentence or f"{name!r} " in sentence


def load(path: Path) -> SpecFile:
    """Read a YAML or JSON file; raise InvalidInput for what is neither, and for a key twice."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        at = f"{path}:{line}:{column}"
        problem = f"{at}: the ClusterSpec cannot be read: it is not UTF-8 text; save it as that."
        raise InvalidInput([problem]) from None
    except OSError as error:
        problem = f"The ClusterSpec {path} cannot be read: {error.strerror}."
        raise InvalidInput([problem]) from None
    try:
        is_json = path.suffix.lower() == ".json"
        return _from_json(path, text) if is_json else _from_yaml(path, text)
    except RecursionError:
        raise InvalidInput([f"{path}: it is nested deeper than any ClusterSpec."]) from None


def _from_json(path: Path, text: str) -> SpecFile:
    try:
        found = spec_yaml.json_content(text)
    except json.JSONDecodeError as error:
        problem = f"{path}:{error.lineno}:{error.colno}: this is not valid JSON: {error.msg}."
        raise InvalidInput([problem]) from None
    try:
        # JSON's tabs stand between its words alone; YAML wants spaces there.
        return _from_yaml(path, text.replace("\t", " "), found)
    except yaml.YAMLError:
        # What YAML does not read of JSON has no places.
        return SpecFile(path, _mapping(path, found))


def _from_yaml(path: Path, text: str, found: object = None) -> SpecFile:
    loader = None
    try:
        loader = spec_yaml.loader(text)
        node = loader.get_single_node()
        places, values = _Places(path).of(node)
        content = loader.construct_document(node) if found is None and node else found
    except yaml.MarkedYAMLError as error:
        if found is not None:
            raise
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        said = " ".join(str(error.problem or error.context).split())
        kind = "" if isinstance(error, spec_yaml.Misread) else "this is not valid YAML: "
        raise InvalidInput([f"{path}{where}: {kind}{said}."]) from None
    except (yaml.YAMLError, ValueError) as error:
        if found is not None:
            raise
        problem = f"{path}: this is not valid YAML: {one_line(error).rstrip('.')}."
        raise InvalidInput([problem]) from None
    finally:
        if loader is not None:
            loader.dispose()
    return SpecFile(path, _mapping(path, content), places, values)


def _mapping(path: Path, content: object) -> Mapping[str, object]:
    if not isinstance(content, Mapping):
        what = "holds nothing" if content is None else f"holds {_KINDS.get(type(content), 'text')}"
        problem = (
            f"{path}:1:1: a ClusterSpec must be a mapping of settings to values, and this file "
            f"{what}; begin it with `name: ` and the cluster's name."
        )
        raise InvalidInput([problem])
    return content


class _Places:
    """Walks a document once: an alias is not followed again, so that none grows without end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[Path_, FilePlace] = {}
        self._values: dict[Path_, str] = {}
        self._twice: list[str] = []
        self._seen: set[int] = set()

    def of(self, node: Any) -> tuple[Mapping[Path_, FilePlace], Mapping[Path_, str]]:
        """Return where each setting stands and what it says; raise for those that stand twice."""
        if node is not None:
            self._places[()] = _place(node)
        self._walk(node, ())
        if self._twice:
            raise InvalidInput(self._twice)
        return self._places, self._values

    def _walk(self, node: Any, path: Path_) -> None:
        if isinstance(node, yaml.ScalarNode):
            self._values[path] = str(node.value)
        if node is None or id(node) in self._seen or isinstance(node, yaml.ScalarNode):
            return
        self._seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self._places[(*path, number)] = _place(item)
                self._walk(item, (*path, number))
            return
        for key, value, name in self._members(node):
            inside = (*path, name)
            self._places.setdefault(inside, _place(key))
            self._walk(value, inside)

    def _members(self, node: Any) -> Iterator[tuple[Any, Any, str]]:
        first: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            name = str(key.value)
            if name in first and key.tag != "tag:yaml.org,2002:merge":
                place, before = _place(key), _place(first[name])
                self._twice.append(
                    f"{self._path}:{place.line}:{place.column}: {name} stands twice here, first in "
                    f"line {before.line}, and only one of the two can count; remove one."
                )
            first.setdefault(name, key)
            yield key, value, name


def _place(node: Any) -> FilePlace:
    return FilePlace(node.start_mark.line + 1, node.start_mark.column + 1)


def _keys(path: Path_) -> tuple[str, ...]:
    return tuple(part for part in path if isinstance(part, str))
