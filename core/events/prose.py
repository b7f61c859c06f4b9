"""Reads which Availability Zones a text of AWS's calls troubled, and which it calls healthy.

There is no field for it: a public issue names zones in prose, in lower case or capitals, as a list,
or with a short form for all but the first ("use1-az1, az2 and az4"). A clause counts for all zones
it names. What is neither is left out: a zone that AWS advises to move to is no zone in trouble.
A text that cannot be judged calls its zones troubled: who acts on it asks for other evidence first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from core.ground.fields import ZONE_NAME

# use1-az2, apne1-az4, usw2-lax1-az1 (a Local Zone). Letters of any script may stand beside it.
_ZONE = r"(?<![a-z0-9-])([a-z]{2,5}[0-9](?:-[a-z]{3}[0-9])?)-az([0-9]{1,2})(?![0-9a-z])"
# What an account calls a zone, told to it alone.
_NAMED = re.compile(rf"(?<![a-z0-9-]){ZONE_NAME}(?![0-9a-z-])")
_MORE = r"(?:[\s,/&()]|and|or|through|thru|to|–|-){1,12}(?:az)([0-9]{1,2})(?![0-9a-z-])"  # noqa: RUF001
_FIRST = re.compile(_ZONE)
_NEXT = re.compile(_MORE)
_FULL_NEXT = re.compile(r"\s*(?:through|thru|to|–|-)\s*" + _ZONE)  # noqa: RUF001
_RANGE = re.compile(r"through|thru|–|\bto\b|-\s*az")  # noqa: RUF001
# A list or a stretch of more zones than a region has is no statement about zones.
MOST_ZONES = 16
LONGEST_PROSE = 65_536
# How far back a word may stand that says how a zone is meant; hostile texts cost no more for it.
LOOK_BACK = 160

# Sentences, and what turns inside one: what is healthy and what is not are told apart there.
_CLAUSES = re.compile(
    r"(?:[.!?](?=\s|$)|[;\n\r]|[。！？；]"  # noqa: RUF001
    r"|,?\s\b(?:but|while|whereas|although|though|however|meanwhile)\b"
    r"|,\s(?=(?:and\s)?(?:all\s|the\s)?others?\b))"
)
# A list of zones goes on after "and"; where a verb came before, another zone's own clause begins.
_ZONE_WITH_VERB = re.compile(
    rf"(?:,\s(?:and\s)?|\sand\s)(?=(?:[a-z]{{2,5}}[0-9](?:-[a-z]{{3}}[0-9])?-az[0-9]{{1,2}}|{ZONE_NAME})[\s)]+"
    r"(?:is|are|was|were|has|have|remains?|continues?)\b)"
)
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|remains?|continues?|lost|impaired|affected)\b")
_PARTLY = re.compile(
    r"\b(?:majority|most|some|many|several|part(?:s|ly|ial\w*)?|percent|subset|progress)\b|[0-9]\s*%"
)
_EXCEPTION = re.compile(
    r"\b(?:except(?:\s+for|ing)?|other than|apart from|aside from|with the exception of"
    r"|outside(?:\s+of)?)\b"
)
_NOT_YET = re.compile(
    r"\b(?:not|no longer|isn't|aren't|hasn't|haven't|never|yet to|before|until|once|when|if|after"
    r"|partially|mostly|expect\w*|will|should|(?<!returned )to)\s+(?:\w+\s+){0,3}"
    r"(?:operating|operate|function\w*|healthy|recover\w*|restored?|resolved?|normal)"
)
_HEALTHY = re.compile(
    r"operating normally|operates normally|functioning normally|working normally"
    r"|normal operations?\b|\bnormally\b|unaffected|unimpacted|not (?:been )?(?:affected|impacted)"
    r"|no (?:customer )?impact|\bhealthy\b|fully (?:recovered|restored|operational)"
    r"|(?:has|have|had|is|are|was|were)(?: now| been| also| since| fully)* "
    r"(?:recovered|restored|resolved|mitigated|back to normal)"
    r"|\bnot (?:experiencing|seeing) |remains? (?:available|operational)|\bno issues?\b"
    r"|(?:does|do|did) not (?:affect|impact)|\bas (?:normal|expected)\b|\bare normal\b"
    r"|returned to (?:normal|pre-)|\bback online\b"
    r"|no longer (?:affected|impacted|impaired|see|seeing|experienc\w+|observ\w+)"
)
# What goes wrong, in a piece without a healthy word.
_TROUBLE = re.compile(
    r"\b(?:degrad|impair|affected|impacted|unavailab|disabled|lost|loss|fail|outage|disrupt|elevated"
    r"|increased|errors?\b|down\b)"
)
# Zones after it are those in trouble, whatever the clause says of others.
_CONFINED = re.compile(
    r"\b(?:limited|isolated|confined|restricted|contained|specific) (?:to|in|within)\b"
)
_ADVICE = re.compile(
    r"\b(?:recommend|advise|suggest|encourage|customers (?:can|may|should)|please|consider)\w*"
    r"|\bfail(?:ing)? ?over to\b|\banother (?:az|(?:availability )?zone)\b"
)
_AWAY = re.compile(r"(?:away from|out of|from|leav\w+|avoid\w*|evacuat\w+)\s+(?:the\s+|an?\s+)?"
                   r"(?:\w+\s+){0,4}[(]?$")  # fmt: skip
# AWS heads every update of a public issue with its severity, and the last one with this mark.
_OVER = re.compile(r"current severity level:\s*operating normally|^\s*\[resolved\]")
# The sentence that ends most of its histories, alone: one that says where, or for whom, is no end.
_DONE = re.compile(
    r"(?:^|[.\]\n])\s*(?:the|this) (?:issue|event) (?:has been|is|was)(?: now| fully)* resolved"
    r"(?:,? and (?:the |all |affected |aws )*services? (?:is|are)(?: now)? operating normally)?"
    r"\s*(?=[.\n]|$)"
)
_HYPHENS = str.maketrans("\u2010\u2011", "--")


@dataclass(frozen=True, slots=True)
class ZoneWords:
    """The zones a text names: in trouble, or called healthy; none is in both."""

    troubled: tuple[str, ...] = ()
    healthy: tuple[str, ...] = ()


def says_resolved(prose: str) -> bool:
    """Say whether a text is the last word on an issue, by its head or by its last sentences."""
    said = _plain(prose)
    if any(_OVER.search(line) for line in said.splitlines()[:4]):
        return True
    ends = [found.end() for found in _DONE.finditer(said)]
    return bool(ends) and not zone_words(said[ends[-1] :]).troubled


def zone_words(prose: str, *, names: bool = False) -> ZoneWords:
    """Return the zones a text names, each once; one that is called both is in trouble.

    A zone is named by its id; with `names` by an account's name for it as well.

    >>> zone_words("Power is lost in use1-az4; use1-az6 and use1-az1 are operating normally.")
    ZoneWords(troubled=('use1-az4',), healthy=('use1-az6', 'use1-az1'))
    """
    troubled: dict[str, None] = {}
    healthy: dict[str, None] = {}
    for clause in _clauses(_plain(prose)):
        for zone, well in _zone_verdicts(clause, names=names):
            if well is not None:
                (healthy if well else troubled)[zone] = None
    return ZoneWords(tuple(troubled), tuple(zone for zone in healthy if zone not in troubled))


def _plain(prose: str) -> str:
    """Return a text as it is compared: in lower case, with a keyboard's letters and hyphens."""
    said = unicodedata.normalize("NFKC", prose[:LONGEST_PROSE]).translate(_HYPHENS)
    return said[:LONGEST_PROSE].lower()


def _clauses(prose: str) -> Iterator[str]:
    for clause in _CLAUSES.split(prose):
        begun = 0
        for found in _ZONE_WITH_VERB.finditer(clause):
            if _VERB.search(clause[max(begun, found.start() - LOOK_BACK) : found.start()]):
                yield clause[begun : found.start()]
                begun = found.end()
        yield clause[begun:]


def _zone_verdicts(clause: str, *, names: bool) -> Iterator[tuple[str, bool | None]]:
    """Yield each zone of a clause and whether it is called well; None: neither."""
    pieces = clause.split(",")
    verdicts = {_verdict(piece) for piece in pieces if list(_zones(piece, names=names))}
    if verdicts == {True, False}:
        # "use1-az4 is degraded, no impact on use1-az6": each for itself.
        for piece in pieces:
            yield from _verdicts_by_place(piece, names=names)
    else:
        yield from _verdicts_by_place(clause, names=names)


def _verdict(piece: str) -> bool | None:
    """Say whether words call what a piece names well, or troubled; None: neither."""
    if _HEALTHY.search(piece) and not (_NOT_YET.search(piece) or _PARTLY.search(piece)):
        return True
    troubled = (_TROUBLE, _CONFINED, _NOT_YET, _PARTLY)
    return False if any(words.search(piece) for words in troubled) else None


def _zones(clause: str, *, names: bool) -> Iterator[tuple[int, str]]:
    yield from _named_zones(clause)
    if names:
        yield from ((found.start(), found.group()) for found in _NAMED.finditer(clause))


def _verdicts_by_place(clause: str, *, names: bool) -> Iterator[tuple[str, bool | None]]:
    zones = list(_zones(clause, names=names))
    if not zones:
        return
    doubted = _NOT_YET.search(clause) or _PARTLY.search(clause)
    well = bool(_HEALTHY.search(clause)) and not doubted
    excepted, confined = _exception_span(clause), _CONFINED.search(clause)
    advice = bool(_ADVICE.search(clause))
    for position, zone in zones:
        left = bool(_AWAY.search(clause[max(0, position - LOOK_BACK) : position]))
        if excepted is not None and excepted.start <= position < excepted.stop:
            # "All are normal except use1-az4", and "zones other than use1-az4 are normal".
            yield zone, not well
        elif left or (confined is not None and position > confined.start()):
            yield zone, False
        else:
            yield zone, None if advice and not well else well


def _exception_span(clause: str) -> slice | None:
    """Return where the zones stand that a clause excepts: at its end, or up to its comma."""
    found = _EXCEPTION.search(clause)
    if found is None:
        return None
    comma = clause.find(",", found.end()) if not clause[: found.start()].strip() else -1
    return slice(found.start(), len(clause) if comma < 0 else comma)


def _named_zones(text: str) -> Iterator[tuple[int, str]]:
    """Yield each zone id of a text and where it stands, short forms and stretches spelled out."""
    for found in _FIRST.finditer(text):
        region, last = found.group(1), int(found.group(2))
        yield found.start(), f"{region}-az{last}"
        end = found.end()
        stretch = _FULL_NEXT.match(text, end)
        moved = (
            _AWAY.search(text[max(0, found.start() - LOOK_BACK) : found.start()]) is not None
        )  # "from use1-az4 to use1-az6"
        if stretch is not None and stretch.group(1) == region and not moved:
            yield from ((found.start(), z) for z in _stretch(region, last, int(stretch.group(2))))
            continue
        for _ in range(MOST_ZONES):
            more = _NEXT.match(text, end)
            if more is None:
                break
            number = int(more.group(1))
            if _RANGE.search(more.group(0)):
                yield from ((found.start(), z) for z in _stretch(region, last, number))
            yield found.start(), f"{region}-az{number}"
            last, end = number, more.end()


def _stretch(region: str, first: int, last: int) -> list[str]:
    return [f"{region}-az{number}" for number in range(first + 1, min(last, first + MOST_ZONES))]
