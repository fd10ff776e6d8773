"""Texts from tables and people, made safe to show: as they are written, never as markdown, LaTeX, HTML or a link.

Streamlit reads labels, captions and messages as markdown with extensions of its own (`:red[…]`, `:tada:`, `$…$`,
`![…](…)`, which makes the browser fetch an address). Select boxes, tables and `st.text` show plain text and need
nothing of this.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from os.path import commonprefix

# Numbers are said in the same words wherever a belief is said.
from l2m_core.step_through.words import counted as counted
from l2m_core.step_through.words import number as number
from l2m_core.step_through.words import percent as percent
from l2m_core.step_through.words import points as points
from l2m_core.step_through.words import predicted as predicted
from l2m_core.step_through.words import span as span
from l2m_core.step_through.words import with_unit as with_unit
from l2m_core.tables.cell_parsing import entered_text as entered_text
from l2m_core.tables.unit_guesses import as_shown, written_unit

# An invisible character without width, at which emoji codes, directives, links and typographic arrows fall apart.
JOINER = "\u2060"
# What markdown reacts to wherever it stands; an underscore only where it is not between letters or digits.
_MARKS = re.compile(r"[!#$&*<>\[\\\]^`{|}~]|(?<![^\W_])_|_(?![^\W_])")
# … and at the start of a line: lists, rules and underlines of headings.
_START = re.compile(r"^(\d+(?=[.)](?:\s|$))|(?=[-+=]))")
_TYPOGRAPHIC = re.compile(r"(?<=[<>~=-])(?=[<>~=-])")
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\[\]]*)\]\((?P<to>(?:[^()\s]|\([^()]*\))*)[^()]*\)")
# Marks that reverse the direction of what follows could make one name look like another.
_DIRECTION_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Words that are written from right to left, such as Hebrew and Arabic: the letters, and what may stand between two of them.
_LEFTWARD = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
_LEFTWARD_WORDS = re.compile(rf"{_LEFTWARD}(?:[\s'\"./_\u2060-]*{_LEFTWARD})*")
ISOLATE, END_ISOLATE = "\u2068", "\u2069"  # first strong isolate, pop directional isolate
_ISOLATED = re.compile(f"{ISOLATE}({_LEFTWARD_WORDS.pattern}){END_ISOLATE}")

SMALL_GAIN = 0.0005  # nats; smaller gains would be rounded to 0

POLICIES = {
    "gain": "expected gain",
    "gain per cost": "expected gain per cost",
    "learned": "the learned policy",
    "monte carlo": "gain from values of similar rows (slow)",
}


def bare(text: object) -> str:
    """One line of visible text, for what is kept or drawn by other means: control characters, line breaks and direction marks
    become a blank or '�'."""
    shown = str(text)
    if shown.isprintable():  # nearly always: nothing of what follows is in it
        return shown.strip()
    shown = _DIRECTION_MARKS.sub("\ufffd", without_isolates(shown))
    return "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in shown).strip()


def plain(text: object) -> str:
    """The same for a page, where words from right to left stand apart from the numbers and signs beside them.

    Without that a browser would put what follows such a name, as ': 45%', before it, or the other way round.
    """
    return _apart(bare(text))


def without_isolates(text: str) -> str:
    """As it was before its words from right to left were set apart: for files."""
    return _ISOLATED.sub(r"\1", text)


def _apart(shown: str) -> str:
    return shown if shown.isascii() else _LEFTWARD_WORDS.sub(rf"{ISOLATE}\g<0>{END_ISOLATE}", shown)


def markdown(text: object) -> str:
    """The text for any place that reads markdown, shown exactly as it is written.

    Streamlit names a field to screen readers by its label as it stands, backslashes included. So no more is escaped than
    what has a meaning: `HbA1c (%)` and `pH_arterial` stay as they are. What of `:`, `@` and `www.` has one is taken by the
    invisible character; parentheses mean something only after a bracket.
    """
    apart = _TYPOGRAPHIC.sub(JOINER, plain(text))
    apart = re.sub(r"(?i)www(?=\.)", lambda found: found[0] + JOINER, apart)
    apart = re.sub("[:@]", lambda found: found[0] + JOINER, apart)
    return _START.sub(r"\1\\", _MARKS.sub(r"\\\g<0>", apart))


def card(text: str) -> str:
    """A model's card, itself markdown, for a page: links to files beside it lead nowhere there, so their texts are left."""

    def kept(link: re.Match[str]) -> str:
        return link[0] if link["to"].startswith("https://") and not link["picture"] else link["text"]

    return _LINK.sub(kept, text)


def chart(text: object, longest: int | None = None) -> str:
    """The text for a Plotly chart, which reads tags, entities and `$…$`; shortened to `longest` characters if given."""
    return _for_plotly(short(text, longest) if longest else plain(text))


def chart_apart(names: Sequence[str], longest: int) -> list[str]:
    """The same for names beside each other, see `short_apart`."""
    return [_for_plotly(name) for name in short_apart(names, longest)]


def _for_plotly(shown: str) -> str:
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace("$", "$" + JOINER)


def short(text: object, longest: int = 28) -> str:
    """At most `longest` characters, cut in the middle, where names that differ at their ends stay apart."""
    shown = bare(text)
    if len(shown) <= longest:
        return _apart(shown)
    head = (longest - 1) * 2 // 3
    return _apart(f"{shown[:head]}…{shown[-(longest - 1 - head) :]}")


def short_apart(names: Sequence[str], longest: int = 28) -> list[str]:
    """Each name as `short` has it; those that would then look the same are cut before the word that tells them apart."""
    alike: dict[str, set[str]] = {}
    for name in names:
        alike.setdefault(short(name, longest), set()).add(bare(name))
    cut = {name: text for same in alike.values() if len(same) > 1 for name, text in _cut_apart(same, longest).items()}
    return [_apart(cut[bare(name)]) if bare(name) in cut else short(name, longest) for name in names]


def _cut_apart(names: Collection[str], longest: int) -> dict[str, str]:
    """names: more than one, all different and too long."""
    same = commonprefix(sorted(names))
    word = re.search(r"\w*$", same)
    head = longest // 3
    room = longest - head - 1
    # A number cut in two would be read as another one; a long word has no room for what it begins with.
    start = word.start() if word and len(same) - word.start() < room // 2 else len(same)
    shown = {name: f"{name[:head]}…{_ended(name[start:], room)}" for name in names}
    for text in set(shown.values()):
        still = [name for name in names if shown[name] == text]
        if len(still) > 1:
            shown |= _cut_apart(still, longest)
    return shown


def _ended(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def ratio(value: float) -> str:
    """Two significant digits and never a power of ten; tiny ratios are shown as '<0.0001'."""
    if 0 < value < 0.0001:
        return "<0.0001"
    return f"{value:.2g}" if value < 10 else number(round(value))


def gain(value: float) -> str:
    """An expected gain in nats; negative noise is shown as 0."""
    if 0 < value < SMALL_GAIN:
        return "<0.001"
    return f"{value if abs(value) >= SMALL_GAIN else 0:.3f}"


def name_with_unit(name: object, unit: str) -> str:
    """'lactate (mmol/L)', for axes and fields; a name that ends with its unit, as 'CRP [mg/l]', has it once."""
    shown = plain(name)
    own = re.search(r"[(\[]([^()\[\]]*)[)\]]$", shown)
    # A guess of the unit is written as units are shown: a name that ends in umol/L has the unit µmol/L.
    is_told = own is not None and (
        own[1].strip().casefold() == unit.casefold() or written_unit(shown) == as_shown(unit)
    )
    return with_unit(shown, f"({unit})" if unit and not is_told else "")


def as_column(name: str, beside: Collection[str]) -> str:
    """The heading of a column that is called as an outcome or a class is, which may be called as one that stands beside it."""
    while name in beside:
        name += " (outcome)"
    return name


def of_100(probability: float) -> str:
    """A natural frequency: '31 of 100'."""
    if 0 < probability < 0.005:
        return "fewer than 1 of 100"
    if 0.995 < probability < 1:
        return "more than 99 of 100"
    return f"{round(100 * probability)} of 100"


def minutes(duration: float | None) -> str:
    """A turnaround in minutes, hours or days."""
    if duration is None or duration != duration:
        return "—"
    if duration < 120:
        return f"{duration:.0f} min"
    return f"{duration / 60:.3g} h" if duration < 48 * 60 else f"{duration / 1440:.3g} days"
