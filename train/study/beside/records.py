"""The records of a results folder: what a table or figure of ours is read from, and how each record was made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from train.study.experiments.experiment import NO_WORDS, experiment_settings, find, scales_of
from train.study.experiments.figures import named

NO_RECORD = "no record"


@dataclass(frozen=True)
class Records:
    """Of the experiments, by their names: NAME.csv and NAME.md."""

    folder: Path

    def read(self, name: str) -> pd.DataFrame:
        """Empty where there is no such record."""
        for file in (self.folder / f"{name}.csv", self.folder / f"{name}.csv.gz"):
            if file.is_file():
                return pd.read_csv(file, dtype={"variant": str}, low_memory=False)
        return pd.DataFrame()

    def scale(self, name: str) -> str:
        table = self.read(name)
        return str(table["scale"].iloc[0]) if "scale" in table and len(table) else ""

    def made(self, name: str) -> list[str]:
        """One sentence: the command and the day, and where the page tells more; none without a record."""
        found = self._made(name)
        return [f"{found[1]}, {found[2]} ([its record](#record-{name.replace('_', '-')}))."] if found else []

    def details(self, name: str) -> list[str]:
        """What the record's own page says of its making: scale, models, stand-ins, scores."""
        captions = re.findall(r"^(.+)  $", self._page(name).partition("**The study's")[0], re.MULTILINE)
        return [f"[{name}.csv]({name}.csv), [{name}.md]({name}.md).", *captions, *[EARLIER] * self.is_earlier(name)]

    def stand_ins(self, name: str, families: Iterable[str]) -> dict[str, str]:
        """Family → the page's sentence on the table in its place, or on what its table lacks."""
        captions = dict(re.findall(r"^(\w+): (.+)  $", self._page(name), re.MULTILINE))
        own = {family: "digits" if family.startswith("digit") else family.removesuffix("_bnn") for family in families}
        return {family: f"{named(family)}: {captions[data]}" for family, data in own.items() if data in captions}

    def _made(self, name: str) -> re.Match[str] | None:
        found = re.search(r"^(`python -m train .+`) · (\S+)$", self._page(name), re.MULTILINE)
        return None if self.read(name).empty else found

    def is_earlier(self, name: str) -> bool:
        """Whether the page quotes the study otherwise than the experiment does today."""
        return (find(name).CLAIM or NO_WORDS) not in self._page(name)

    def _page(self, name: str) -> str:
        file = self.folder / f"{name}.md"
        return file.read_text(encoding="utf-8") if file.is_file() else ""


EARLIER = (
    "That page is of an earlier run, which put the study's claim in other words: the same command today may measure other "
    "quantities."
)


def scale_line(records: Records, name: str, families: Iterable[str]) -> str:
    """The scale of a record in a few words; contexts as the configs have them, where they have as many tasks."""
    table, scale = records.read(name), records.scale(name)
    own = {f.name: f for f in experiment_settings(name, scale).families} if scale in scales_of(name) else {}
    parts = []
    for family in families:
        counts = table.loc[table["family"] == family, "tasks"] if "tasks" in table else pd.Series(dtype=int)
        tasks = int(counts.max()) if len(counts) else None
        agrees = family in own and tasks in (None, own[family].tasks)
        context = f", contexts of {own[family].context}" if agrees else ""
        number = tasks or (own[family].tasks if agrees else None)
        parts.append(f"{named(family)} ({number} task{'s' * (number != 1)}{context})" if number else named(family))
    return f"scale {scale}: {', '.join(parts)}"


def to_make(name: str, families: Iterable[str]) -> list[str]:
    """A sentence for each family that a record lacks: which command makes it."""
    missing: dict[str, list[str]] = {}
    for family in families:
        scales = [s for s in scales_of(name) if family in {f.name for f in experiment_settings(name, s).families}]
        command = f"`python -m train reproduce {name} --scale {scales[0]}` makes it" if scales else NOTHING_MAKES_IT
        missing.setdefault(command, []).append(named(family))
    return [f"No record of {', '.join(names)}; {command}." for command, names in missing.items()]


NOTHING_MAKES_IT = "no scale of the experiment has it"
