"""Finding, applying and undoing the edits of one text. No file is touched here."""

import re
from dataclasses import dataclass
from enum import Enum

from .places import PLACES, Place


class State(Enum):
    """How a place stands."""

    ORIGINAL = "as in vLLM 0.24.0"
    PATCHED = "patched"
    OTHER = "edited by someone else: neither as in vLLM 0.24.0 nor patched"


@dataclass(frozen=True)
class Found:
    """A place and how it stands."""

    place: Place
    state: State

    def __str__(self) -> str:
        return f"{self.place.file}: {self.place.what}: {self.state.value}"


def look(file: str, text: str) -> list[Found]:
    """Every place of `file`, as it stands in `text`."""
    return [Found(place, _state(place, text)) for place in PLACES if place.file == file]


def apply(file: str, text: str) -> str:
    """`text` with every place of `file` patched. All of them must be original."""
    return _turn(file, text, State.ORIGINAL)


def undo(file: str, text: str) -> str:
    """`text` with every place of `file` as it was. All of them must be patched."""
    return _turn(file, text, State.PATCHED)


def _turn(file: str, text: str, wanted: State) -> str:
    for place in PLACES:
        if place.file != file:
            continue
        assert _state(place, text) is wanted, f"{place.file}: {place.what}"
        old, new = place.line, place.after
        if wanted is State.PATCHED:
            old, new = new, old
        begin, end = _region(place, text)
        region = text[begin:end]
        (at,) = _occurrences(old, region)
        text = text[:begin] + region[:at] + new + region[at + len(old) :] + text[end:]
    return text


def _state(place: Place, text: str) -> State:
    region = _region(place, text)
    if region is None:
        return State.OTHER
    body = text[region[0] : region[1]]
    lines, patched = _occurrences(place.line, body), _occurrences(place.after, body)
    # What is put beside a line keeps the line; what replaces it does not.
    if len(patched) == 1 and len(lines) == place.after.split("\n").count(place.line):
        return State.PATCHED
    foreign = [line for line in place.after.split("\n") if line.strip() and line != place.line]
    # A line of ours without the others, or with more on it, means that somebody worked on the
    # patch.
    torn = any("opprof" in line.lower() and f"\n{line}" in f"\n{body}" for line in foreign)
    return State.ORIGINAL if len(lines) == 1 and not patched and not torn else State.OTHER


def _region(place: Place, text: str) -> tuple[int, int] | None:
    """Where to look: the body of `within`, up to the next line that is indented no more than it."""
    if not place.within:
        return 0, len(text)
    headers = [m.start() for m in re.finditer(rf"^{re.escape(place.within)}", text, re.MULTILINE)]
    if len(headers) != 1:
        return None
    begin = headers[0]
    indent = len(place.within) - len(place.within.lstrip())
    # The closing bracket of a signature stands at the header's own indent.
    after = re.compile(rf"^ {{0,{indent}}}[^\s)\]]", re.MULTILINE).search(text, begin + indent + 1)
    return begin, after.start() if after else len(text)


def _occurrences(lines: str, text: str) -> list[int]:
    """Where `lines` stand in `text` as whole lines."""
    return [m.start() for m in re.finditer(rf"^{re.escape(lines)}$", text, re.MULTILINE)]
