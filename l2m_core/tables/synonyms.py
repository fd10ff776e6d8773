"""Words that say the same in one coding or another: Y and Yes, TRUE and 1."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from l2m_core.tables.lookalikes import twin_key

NO = frozenset(("0", "no", "n", "false", "negative", "neg", "neg.", "absent", "-", "nein", "non"))
YES = frozenset(("1", "yes", "y", "true", "positive", "pos", "pos.", "present", "+", "ja", "oui"))
FEMALE = frozenset(("female", "f", "w", "woman", "weiblich", "frau", "femme", "mujer"))
MALE = frozenset(("male", "m", "man", "männlich", "mann", "homme", "hombre"))
SYNONYMS = (
    NO,
    YES,
    frozenset(("dead", "died", "death", "deceased", "expired")),
    frozenset(("alive", "survived", "survivor", "living")),
    FEMALE,
    MALE,
)
# The two levels of a column. F is false beside true, and female beside male. A sign is no spelling of a word: beside words a
# minus may mean "not recorded".
_PAIRS = ((NO - {"-"}, YES - {"+"}), (frozenset(("f", "false", "0")), frozenset(("t", "true", "1"))), (FEMALE, MALE))
_MOST_SPELLINGS = 12


def spellings_of_two(cells: Mapping[str, int], levels: Sequence[str] = ()) -> dict[str, str]:
    """Text → the spelling of its level, where a column holds nothing but spellings of two levels, one of them in several.

    cells: how often each text stands there. The spelling is the stated level, else the most frequent text.
    """
    if not 2 < len({*cells, *levels}) <= _MOST_SPELLINGS:
        return {}
    for pair in _PAIRS:
        sides = {text: _side(text, pair) for text in {*cells, *levels}}
        if set(sides.values()) == {0, 1}:
            often = sorted(cells, key=lambda text: (-cells[text], text))
            kept = {sides[text]: text for text in reversed([*levels, *often])}
            return {text: kept[side] for text, side in sides.items()}
    return {}


def said_twice(texts: Collection[str]) -> Iterator[tuple[str, str]]:
    """Pairs of texts that say the same in different words, such as Y and yes."""
    for words in SYNONYMS:
        found: dict[str, str] = {}
        for text in texts:
            if (key := twin_key(text)) in words:
                found.setdefault(key, text)
        first, *others = found.values() or ("",)
        yield from ((first, other) for other in others)


def _side(text: str, pair: tuple[Collection[str], Collection[str]]) -> int | None:
    key = twin_key(text)
    return next((side for side, words in enumerate(pair) if key in words), None)
