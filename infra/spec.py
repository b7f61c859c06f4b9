"""Finds and reads the ClusterSpec that everything here is built from; refuses with every reason.

The stacks and the command line both start here, so `pulumi up` and `stillwater check` refuse the
same specs. YAML 1.1 makes numbers of `010` and `1:40`, truth values of `no` and `on`, and takes the
last of two equal keys without a word: what a reader would not have meant is refused, with its line
and column, which are those of the setting at fault.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from core import timing
from core.checks import contradictions
from core.checks.contradictions import OWN_KEYS
from core.checks.finding import Finding
from core.checks.table import description_findings, stops_up
from core.cluster import ClusterSpec, addresses, adoption, changes, limits, parse
from core.cluster.adoption import Adoption
from core.cluster.reading import shortened
from core.ground.errors import InvalidInput, one_line
from infra import versions

# More digits than any setting takes; Python itself refuses to print much longer ones.
MOST_DIGITS = 18
_TAG = "tag:yaml.org,2002:"
_UNORDERED = {f"{_TAG}{name}" for name in ("binary", "omap", "pairs", "set")}
_READ_AS = {
    f"{_TAG}bool": "a truth value",
    f"{_TAG}int": "a number",
    f"{_TAG}float": "a number",
    f"{_TAG}null": "nothing",
    f"{_TAG}timestamp": "a date",
}
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_SIXTIES = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")


class Misread(yaml.MarkedYAMLError):
    """What is YAML and reads as something that nobody meant; its problem is a clause."""


class DescriptionLoader(yaml.SafeLoader):
    """YAML's safe loader, without the readings that nobody means."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002  # its base's
        _refuse(node)
        try:
            return super().construct_object(node, deep=deep)
        except yaml.YAMLError:
            raise
        except (ValueError, KeyError, AttributeError, OverflowError) as error:
            kind = str(node.tag).removeprefix(_TAG)
            problem = f"{str(node.value)[:40]!r} cannot be read as {kind}; correct it"
            raise _problem(node, problem) from error

    def construct_mapping(  # its base's
        self,
        node: Any,
        deep: bool = False,  # noqa: FBT001, FBT002
    ) -> dict[Hashable, Any]:
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.tag in _READ_AS:
                written = str(key.value)[:40] or "nothing"
                raise _problem(
                    key,
                    f"the key {written} is read as {_READ_AS[key.tag]}, and keys are text; put it "
                    f"in quotes",
                )
        return super().construct_mapping(node, deep=deep)


def description_loader(text: str) -> DescriptionLoader:
    """Return a loader over a text; raise MarkedYAMLError for a character YAML has not."""
    try:
        return DescriptionLoader(text)
    except yaml.reader.ReaderError as error:
        at = error.position
        raise _bad_character(text, at) from None


def json_content(text: str) -> object:
    """Return what a JSON text holds; raise JSONDecodeError."""

    def no_number(written: str) -> float:
        raise json.JSONDecodeError(f"{written} is no number", text, text.find(written))

    def whole(digits: str) -> int:
        if len(digits) > MOST_DIGITS + len("-"):
            raise json.JSONDecodeError(_too_long(digits), text, text.find(digits))
        return int(digits)

    return json.loads(text, parse_constant=no_number, parse_int=whole)


def _refuse(node: Any) -> None:
    if node.tag in _UNORDERED:
        name = str(node.tag).removeprefix(_TAG)
        raise _problem(node, f"no setting is YAML's {name}; write a list, a mapping or text")
    if not isinstance(node, yaml.ScalarNode):
        return
    if _HALF_A_CHARACTER.search(node.value):
        raise _problem(node, f"{node.value!r} has half of a character in it; correct it")
    if node.tag not in {f"{_TAG}int", f"{_TAG}float"} or node.style is not None:
        return
    written = node.value.replace("_", "")
    if node.tag == f"{_TAG}int" and _OCTAL.fullmatch(node.value):
        raise _problem(
            node,
            f"{written} begins with a zero, and YAML reads it in base eight, as {int(written, 8)}. "
            "Write it without the zero, or in quotes if it is text",
        )
    if _SIXTIES.fullmatch(node.value):
        raise _problem(
            node,
            f"{written} has a colon, and YAML reads a number in base sixty; put it in quotes",
        )
    if len(written) > MOST_DIGITS + len("-0x"):
        raise _problem(node, f"{_too_long(written)}; correct it")


def _too_long(digits: str) -> str:
    return (
        f"{digits[:MOST_DIGITS]}... has {len(digits)} digits, and no setting takes more than "
        f"{MOST_DIGITS}"
    )


def _problem(node: Any, problem: str) -> Misread:
    return Misread(None, None, problem, node.start_mark)


def _bad_character(text: str, at: int) -> yaml.MarkedYAMLError:
    lines = [0, *(number + 1 for number, each in enumerate(text) if each == "\n")]
    line = bisect.bisect_right(lines, at) - 1
    mark = yaml.Mark("", at, line, at - lines[line], "", 0)
    shown = f"U+{ord(text[at]):04X}" if at < len(text) else "a character"
    return yaml.MarkedYAMLError(
        None, None, f"the character {shown} may not stand in YAML; take it out", mark
    )


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

    def placed_sentence(self, sentence: str) -> str:
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
        # A setting of Kafka's that a key of its own decides is written there.
        keys = (OWN_KEYS.get(word, word) for word in words)
        compound = [key for key in keys if "_" in key or "." in key]
        for word in compound:
            found = self._key_path(word, pool)
            if found is not None:
                return self._item(found, words) or self.places[found]
        return (
            self._value_place(words)
            or (self.places[pool] if pool is not None else None)
            or self._place_spelled(sentence)
            or self._first(words)
        )

    def _value_place(self, words: Sequence[str]) -> FilePlace | None:
        for word in words:
            for path, value in self.values.items():
                if value == word and len(word) > 3 and any(c in word for c in "-./0123456789"):
                    return self.places[path]
        return None

    def _first(self, words: Sequence[str]) -> FilePlace | None:
        found = (self._key_path(word, None) for word in words)
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

    def _key_path(self, word: str, pool: Path_ | None) -> Path_ | None:
        wanted = tuple(word.split("."))
        found = [path for path in self.places if _keys(path)[-len(wanted) :] == wanted]
        of_pool = [path for path in found if pool is not None and path[: len(pool)] == pool]
        return next(iter(of_pool or found), None)

    def _item(self, listed: Path_, words: Sequence[str]) -> FilePlace | None:
        """Return the place of the item of a list that the words name."""
        for path, value in self.values.items():
            if len(path) > len(listed) and path[: len(listed)] == listed and value in words:
                return self.places[path]
        return None


def _says(sentence: str, name: str) -> bool:
    return f" {name} " in sentence or f" {name}, " in sentence or f"{name!r} " in sentence


def load_yaml(path: Path) -> SpecFile:
    """Read a YAML or JSON file; raise InvalidInput for what is neither, and for a key twice."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        at = f"{path}:{line}:{column}"
        problem = f"{at}: the file cannot be read: it is not UTF-8 text; save it as that."
        raise InvalidInput([problem]) from None
    except OSError as error:
        problem = f"The file {path} cannot be read: {error.strerror}; name another."
        raise InvalidInput([problem]) from None
    try:
        is_json = path.suffix.lower() == ".json"
        return _from_json(path, text) if is_json else _from_yaml(path, text)
    except RecursionError:
        raise InvalidInput([f"{path}: it is nested deeper than any description."]) from None


def _from_json(path: Path, text: str) -> SpecFile:
    try:
        found = json_content(text)
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
        loader = description_loader(text)
        node = loader.get_single_node()
        places, values = _Places(path).read(node)
        content = loader.construct_document(node) if found is None and node else found
    except yaml.MarkedYAMLError as error:
        if found is not None:
            raise
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        said = " ".join(str(error.problem or error.context).removeprefix("but ").split())
        kind = "" if isinstance(error, Misread) else "this is not valid YAML: "
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
            f"{path}:1:1: a description must be a mapping of settings to values, and this file "
            f"{what}; write each setting as `name: value`."
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

    def read(self, node: Any) -> tuple[Mapping[Path_, FilePlace], Mapping[Path_, str]]:
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


ROOT = Path(__file__).resolve().parents[1]
PATH_KEY, INLINE_KEY = "spec", "cluster"
# The one key of a description of a cluster that exists.
ADOPT = "adopt"
# What a file is that has one of these keys and no pools, and who reads it.
OTHER_FILES = {
    ADOPT: "this describes a cluster that exists, which `stillwater adopt plan FILE` checks",
    "apiVersion": "this is a Kubernetes resource and no ClusterSpec; begin one with `stillwater "
    "init`",
}
NO_SPEC = (
    "This stack has no ClusterSpec: set one with `pulumi config set stillwater:spec "
    "stacks/config/clusters/example.yaml`."
)


class Settings(Protocol):
    """What of a stack's configuration is read here (pulumi.Config has it)."""

    def get(self, key: str) -> str | None: ...

    def get_object(self, key: str) -> object: ...


def load(settings: Settings, environment: str, root: Path = ROOT) -> ClusterSpec:
    """Return the spec of a stack; raise InvalidInput with every problem it has.

    `stillwater:spec` names a file that all layers share; `stillwater:cluster` holds the same as an
    object.
    """
    path = settings.get(PATH_KEY)
    if path and settings.get_object(INLINE_KEY) is None:
        return _valid_spec(load_yaml(root / path), environment)
    spec = parse_spec(settings, root)
    problems = [*_naming_problems(spec, environment), *problems_of(spec)]
    if problems:
        raise InvalidInput(problems)
    return spec


def adopted_description(settings: Settings, root: Path = ROOT) -> Adoption | None:
    """Return the description of a cluster that exists; None: the stack's is a ClusterSpec."""
    path, inline = settings.get(PATH_KEY), settings.get_object(INLINE_KEY)
    if inline is not None:
        raw = inline
        return adoption.parse(raw) if isinstance(raw, Mapping) and ADOPT in raw else None
    if not path:
        return None
    found = load_yaml(root / path)
    return adoption.parse(found.content, found.locate) if ADOPT in found.content else None


def parse_spec(settings: Settings, root: Path = ROOT) -> ClusterSpec:
    """Return the spec of a stack that may be built already, whatever is to be said of it today."""
    return parse(_raw(settings, root))


def read(path: Path) -> ClusterSpec:
    """Return the spec in a YAML or JSON file; raise InvalidInput with every problem it has.

    Each names file, line and column.
    """
    found = load_yaml(path)
    for key, remedy in OTHER_FILES.items():
        if key in found.content and "pools" not in found.content:
            raise InvalidInput([f"{found.locate((key,), '')}{remedy}."])
    return _valid_spec(found)


def problems_of(spec: ClusterSpec) -> list[str]:
    """Return a sentence for everything that would fail, or contradicts itself, when it is built."""
    kubernetes = spec.kubernetes
    found = [
        *contradictions.problems(spec),
        *limits.problems(spec),
        *versions.problems(kubernetes.version, kubernetes.addon_versions),
        *(violation.sentence for violation in timing.check(spec)),
        *(_refusal(each) for each in description_findings(spec)[0] if stops_up(each)),
    ]
    return [*map(shortened, found)]


def _refusal(found: Finding) -> str:
    return f"{found.line.removesuffix('.')}, or name {found.check} in `accept`."


def doubts_of(spec: ClusterSpec) -> list[str]:
    """Return a sentence for what nobody can tell here, or a new account is too small for."""
    found = [
        *limits.unchecked_types(spec),
        *limits.tight(spec),
        *contradictions.doubts(spec),
        *versions.doubts(spec.kubernetes.version, spec.kubernetes.addon_versions),
        *addresses.beyond_what_accounts_begin_with(spec),
    ]
    return [*map(shortened, found)]


def doubts_in(path: Path, spec: ClusterSpec) -> list[str]:
    """Return the same behind file, line and column of what they are of."""
    found = load_yaml(path)
    return [found.placed_sentence(sentence) for sentence in doubts_of(spec)]


def standing_spec(path: Path) -> ClusterSpec:
    """Return the spec in a file that a cluster runs by, whatever is to be said of it today."""
    found = load_yaml(path)
    return parse(found.content, found.locate)


def changes_in(path: Path, spec: ClusterSpec, before: ClusterSpec) -> None:
    """Raise InvalidInput with what a cluster that runs by `before` could not follow, and where."""
    if problems := changes.refused_changes(before, spec):
        found = load_yaml(path)
        raise InvalidInput(found.placed_sentence(problem) for problem in problems)


def content(path: Path) -> Mapping[str, object]:
    """Return the content of a YAML or JSON file."""
    return load_yaml(path).content


def _valid_spec(found: SpecFile, environment: str | None = None) -> ClusterSpec:
    spec = parse(found.content, found.locate)
    misnamed = [] if environment is None else _naming_problems(spec, environment)
    problems = [*misnamed, *problems_of(spec)]
    if problems:
        raise InvalidInput(found.placed_sentence(problem) for problem in problems)
    return spec


def _raw(settings: Settings, root: Path) -> object:
    path, inline = settings.get(PATH_KEY), settings.get_object(INLINE_KEY)
    if path and inline is not None:
        raise InvalidInput(
            ["stillwater:spec and stillwater:cluster are both set; keep the one you mean."]
        )
    if path:
        return content(root / path)
    if inline is not None:
        return inline
    raise InvalidInput([NO_SPEC])


def _naming_problems(spec: ClusterSpec, environment: str) -> list[str]:
    problem = (
        f"environment is {spec.environment!r} but this stack is named for {environment!r}: "
        f"name the stack {spec.environment}-<layer> or change the spec."
    )
    return [] if spec.environment == environment else [problem]
