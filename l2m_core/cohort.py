"""Cohort: a validated table with its schema, as arrays. The context of one real task."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.diagnostics import Diagnostics, diagnose, doubtful_values
from l2m_core.errors import CohortError, FeatureError, InputError, type_of
from l2m_core.lazy import lazy
from l2m_core.schema import OTHER, Feature, Overrides, Schema, did_you_mean
from l2m_core.tables.arrays import finite_vector, read_arrays
from l2m_core.tables.cell_parsing import number_text
from l2m_core.tables.column_parsing import read_columns
from l2m_core.tables.column_reading import DEFAULT_RULES, ReadingRules
from l2m_core.tables.entered_values import UnseenLevelWarning, code_of, codes_of, encode_values, value_text
from l2m_core.tables.frames import names_of_frame, table_from_frame
from l2m_core.tables.measurements import as_they_are, find_measurements, one_row_each
from l2m_core.tables.outcome_inference import FEWEST_ROWS
from l2m_core.tables.reading import read_table
from l2m_core.tables.reading_notes import CellNote, joined_texts
from l2m_core.tables.restoring import OF_COMMAS, READ_AS, READ_BY, newer_readings, understood
from l2m_core.tables.schema_inference import infer
from l2m_core.tables.stated_settings import combine, how_to_read, levels_of
from l2m_core.tables.table import DEFAULT_LIMITS, Limits, Table, check_size

__all__ = ["Cohort", "UnseenLevelWarning"]


@dataclass(frozen=True, eq=False)
class Cohort:
    """x: (N, d) float32 of the used features, NaN where not recorded; y: (N,) int64 class codes, or float32.

    The arrays are read-only: a cohort is shared by sessions and caches.
    """

    schema: Schema
    x: np.ndarray
    y: np.ndarray
    name: str = "cohort"
    warnings: tuple[str, ...] = ()
    source: Table | None = field(default=None, repr=False)
    source_rows: np.ndarray | None = field(default=None, repr=False)  # (N,) rows of `source`
    rules: ReadingRules = field(default=DEFAULT_RULES, repr=False)
    decimals: Mapping[str, str] = field(default_factory=dict, repr=False)  # column → sign that its cells told
    notes: Mapping[str, tuple[CellNote, ...]] = field(default_factory=dict, repr=False)  # see `reading_report`
    kept_patients: np.ndarray | None = field(default=None, repr=False)  # (N,) `patients`, where the table was left out

    def __post_init__(self):
        x = np.ascontiguousarray(self.x, dtype=np.float32)
        y = np.ascontiguousarray(self.y, dtype=np.float32 if self.kind == "continuous" else np.int64)
        for setting, array in (("x", x), ("y", y)):
            array = array.copy() if array is getattr(self, setting) and array.flags.writeable else array
            object.__setattr__(self, setting, _frozen(array))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """NumPy unpickles every array as one that can be written to."""
        self.__dict__.update({name: _frozen(v) if isinstance(v, np.ndarray) else v for name, v in state.items()})

    # Reading

    @classmethod
    def from_file(
        cls,
        source: Any,
        outcome: str | None = None,
        *,
        name: str | None = None,
        delimiter: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
        sheet: str | None = None,
        measurements: str | None = None,
        **options,
    ) -> Cohort:
        """CSV, gzipped CSV, Parquet or an Excel workbook, told by the content. `source` is a path, bytes or an open file;
        `sheet` is read of a workbook that has several; measurements: 'first' or 'last' result of each test, of a table with a
        row for each measurement, which becomes one with a row for each patient."""
        table = read_table(source, delimiter, limits, name, sheet)
        if measurements is not None:
            return cls.from_table(one_row_each(table, measurements, limits=limits), outcome, **options)
        found = find_measurements(table)
        if found is None:
            return cls.from_table(table, outcome, **options)
        check_size(table.rows, len(table.names), limits)
        try:
            return cls.from_table(replace(table, warnings=(*table.warnings, as_they_are(found))), outcome, **options)
        except CohortError as refusal:
            raise CohortError(f"{refusal} {as_they_are(found)}") from refusal

    @classmethod
    def from_csv(
        cls,
        source: Any,
        outcome: str | None = None,
        baseline: Iterable[str] = (),
        costs: Mapping[str, float] | None = None,
        schema: Any = None,
        name: str | None = None,
        **options,
    ) -> Cohort:
        """Like `from_table`; further options are those of `from_file` and of `ReadingRules`.

        >>> rows = "\\n".join(f"{40 + i},{i % 3}.5,{i % 2}" for i in range(20))
        >>> cohort = Cohort.from_csv(f"age,lactate,died\\n{rows}".encode(), outcome="died", baseline=["age"])
        >>> cohort.names, cohort.kind, cohort.x.shape
        (('age', 'lactate'), 'binary', (20, 2))
        """
        return cls.from_file(source, outcome, baseline=baseline, costs=costs, schema=schema, name=name, **options)

    from_excel = from_parquet = from_csv

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        outcome: str | None = None,
        baseline: Iterable[str] = (),
        costs: Mapping[str, float] | None = None,
        schema: Any = None,
        name: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
        **options,
    ) -> Cohort:
        table = table_from_frame(frame, limits, name or "cohort")
        return cls.from_table(table, outcome, baseline, costs, schema, **options)

    @classmethod
    def from_table(
        cls,
        table: Table,
        outcome: str | None = None,
        baseline: Iterable[str] = (),
        costs: Mapping[str, float] | None = None,
        schema: Any = None,
        *,
        positive: str | None = None,
        decimal: str | None = None,
        missing: Iterable[str] = (),
        censored: str = "refuse",
        units: str = "refuse",
    ) -> Cohort:
        """What `schema` (a Schema, YAML text, a path to YAML, or nested dicts) leaves out is inferred.

        outcome: the column to predict; positive: the class that counts as positive;
        baseline: features known from the start; costs: cost of a feature;
        decimal: '.' or ',' where the cells cannot tell; missing: further texts that mean "not recorded";
        censored: 'refuse' cells such as '<5', or take their 'limit'; units: 'refuse' cells such as '5 mg/L', or 'drop' the
        unit where a column has one and take the number. New rows are read likewise.
        """
        rules = ReadingRules(decimal, missing, censored, units)
        content = infer(table, combine(schema, outcome, positive, baseline, costs or {}), rules)
        return cls(
            content.schema,
            content.x,
            content.y,
            table.name,
            content.warnings,
            table,
            content.kept,
            rules,
            content.decimals,
            content.notes,
        )

    @classmethod
    def restored(cls, frame: pd.DataFrame, schema: Schema, content_hash: str, name: str = "cohort") -> Cohort:
        """A cohort from its own `frame()` and schema, as it was when it had this hash, however files are read today.

        What a file of such cells would be read as today can differ; warnings say where. Further values, as of patients who are
        brought to it, are read by the rules that were stated for its file, and by the decimal commas that its cells told.
        """
        rules = ReadingRules(**frame.attrs.get(READ_AS, {}))
        commas = dict.fromkeys(frame.attrs.get(OF_COMMAS, ()), ",")
        table = replace(table_from_frame(frame, name=name), reading=frame.attrs.get(READ_BY, 1))
        for kept in (understood(table, schema), table):  # the second: a table that was stored as it came
            try:
                cohort = cls.from_table(kept, schema=schema)
            except InputError:
                if kept is table:
                    raise
                continue
            if cohort.content_hash == content_hash:
                warnings = (*cohort.warnings, *newer_readings(cohort))
                return replace(cohort, rules=rules, decimals={**cohort.decimals, **commas}, warnings=warnings)
        raise CohortError(
            f"Cohort '{name}' reads differently from when it was stored, by another version of this program (content hash "
            f"{cohort.content_hash[:16]}… instead of {content_hash[:16]}…). Upload its table again."
        )

    def read_back(self, frame: pd.DataFrame, schema_yaml: str) -> Cohort:
        """This cohort as it will be opened from its stored `frame()` and schema; refused where that is another one."""
        try:
            return Cohort.restored(frame, Schema.from_yaml(schema_yaml), self.content_hash, self.name)
        except InputError as error:
            raise CohortError(
                f"Cohort '{self.name}' cannot be stored: its table and schema would be read back as another cohort. "
                "Read it anew, with Cohort.from_frame or from a CSV file, and store that."
            ) from error

    @classmethod
    def from_arrays(
        cls,
        x,
        y,
        names: Sequence[str] | None = None,
        kind: str | None = None,
        acquirable=None,
        categorical=None,
        *,
        levels: Mapping[str, Sequence[str]] | None = None,
        classes: Sequence[str] | None = None,
        costs=None,
        groups: Sequence[str | None] | None = None,
        outcome: str = "outcome",
        name: str = "cohort",
        fewest_rows: int = FEWEST_ROWS,
    ) -> Cohort:
        """Arrays as they are: no column is dropped or reordered, no row is left out.

        x: (N, d) numbers, NaN where not recorded, codes 0, 1, … in categorical columns; y: (N,) labels or numbers;
        names: (d,), else those of a frame's columns, else x0, x1, …;
        acquirable, categorical: (d,) bool, or the names of those that are; levels: texts of the codes by name; costs: (d,);
        groups: (d,) name of the panel or None; classes: texts of y's codes 0, 1, … (else: y's distinct values).
        """
        content = read_arrays(
            x, y, names, kind, acquirable, categorical, levels or {}, classes, costs, groups, outcome, fewest_rows
        )
        return cls(content.schema, content.x, content.y, name, content.warnings)

    # Description

    @property
    def kind(self) -> str:
        return self.schema.outcome.kind

    @property
    def classes(self) -> tuple[str, ...]:
        return self.schema.outcome.classes

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @lazy
    def class_counts(self) -> np.ndarray:
        """(K,) int64: rows of each class; empty for a continuous outcome."""
        return _frozen(np.bincount(self.y, minlength=self.n_classes) if self.n_classes else np.zeros(0, np.int64))

    @lazy
    def features(self) -> tuple[Feature, ...]:
        """The used features, in the order of x's columns."""
        return tuple(feature for feature in self.schema.features if feature.used)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    @lazy
    def r(self) -> np.ndarray:
        """(N, d) bool: True where recorded."""
        return _frozen(~np.isnan(self.x))

    @lazy
    def categorical(self) -> np.ndarray:
        """(d,) bool: True where codes have no order. A binary feature is 0 or 1, so it counts as a number."""
        return _frozen(np.array([feature.kind == "category" for feature in self.features]))

    @lazy
    def acquirable(self) -> np.ndarray:
        return _frozen(np.array([feature.role == "acquirable" for feature in self.features]))

    @lazy
    def costs(self) -> np.ndarray:
        """(d,) price of the action that measures each feature; a panel's is the dearest of its acquirable members'."""
        prices = self.schema.prices
        return _frozen(np.array([prices[name] for name in self.names], dtype=np.float32))

    @lazy
    def groups(self) -> np.ndarray:
        """(d,) int64: features that are measured by one action share a number."""
        keys = [("feature", f.name) if f.group is None else ("group", f.group) for f in self.features]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return _frozen(np.array([numbers[key] for key in keys], dtype=np.int64))

    @lazy
    def content_hash(self) -> str:
        """sha256 of the schema and the data; the cohort's name plays no part."""
        digest = hashlib.sha256(self.schema.to_yaml().encode())
        for array in (np.where(self.r, self.x, np.float32(np.nan)), self.y):
            digest.update(f"{array.shape}{array.dtype.str}".encode())
            digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Cohort('{self.name}': {len(self):,} rows, {len(self.features)} features, {self.kind} outcome)"

    def feature(self, name: str) -> Feature:
        """A used feature by name; FeatureError otherwise."""
        for feature in self.features:
            if feature.name == name:
                return feature
        raise FeatureError(f"There is no feature '{name}'.{did_you_mean(name, self.names)}")

    @lazy
    def patient_column(self) -> str | None:
        """The column that tells which rows belong to one patient, where patients have several rows."""
        told = (name for name, notes in self.notes.items() if any(note.kind == "repeated" for note in notes))
        return next(told, None)

    @lazy
    def patients(self) -> np.ndarray | None:
        """(N,) a number of the patient whom each row is of; None where no column tells that patients have several rows."""
        if self.kept_patients is not None or self.patient_column is None:
            return self.kept_patients
        return _frozen(self.grouped_by(self.patient_column))

    def grouped_by(self, column: str) -> np.ndarray:
        """(N,) numbers from 0: rows with the same text in a column of the table share one; a row without any is alone."""
        frame = self.frame()
        if column not in frame:
            raise CohortError(f"The cohort has no column '{column}'.{did_you_mean(column, frame.columns)}")
        texts = frame[column].astype("string").fillna("").to_numpy(dtype=object)
        alone = texts == ""
        texts[alone] = [f"\0{row}" for row in np.flatnonzero(alone)]
        return np.unique(texts.astype(str), return_inverse=True)[1]

    def rules_of(self, name: str) -> ReadingRules:
        """How further values of a column are read: as its cells were, with the decimal sign that was stated or told."""
        return self._rules[name] if name in self._rules else self.rules

    @lazy
    def _rules(self) -> dict[str, ReadingRules]:
        return {
            name: replace(
                self.rules,
                decimal=self.rules.decimal or self.decimals.get(name),
                joined=joined_texts(self.notes.get(name, ())),
            )
            for name in {*self.decimals, *self.names, self.schema.outcome.name}
        }

    # Queries

    def encode(self, rows: Any) -> np.ndarray:
        """(n, d) float32 from a DataFrame, a dict (one row) or a list of dicts.

        Texts and numbers are read as the cohort's own cells were, by `rules_of` their column. What is absent, None, NaN
        or means "not recorded" is not measured. The outcome and ignored columns may be there, and are not read. An
        unseen category becomes 'other' with a warning; all else that is wrong is a FeatureError.
        """
        if isinstance(rows, pd.DataFrame):
            # Named as the cohort's own columns were.
            labels, repeated, _ = names_of_frame(rows)
            if repeated and not {*labels} <= {*self.schema.names, self.schema.outcome.name}:
                raise FeatureError("The DataFrame has a column name twice. Keep one column of each name.")
            return self._encode_columns({name: rows.iloc[:, i] for i, name in enumerate(labels)}, len(rows))
        rows = [rows] if isinstance(rows, Mapping) else rows
        if isinstance(rows, str) or not isinstance(rows, Sequence) or not all(isinstance(r, Mapping) for r in rows):
            raise FeatureError("Rows must be a DataFrame, a dict of feature: value, or a list of such dicts.")
        names = dict.fromkeys(name for row in rows for name in row)
        return self._encode_columns({name: [row.get(name) for row in rows] for name in names}, len(rows))

    def _encode_columns(self, columns, n) -> np.ndarray:
        unread = {self.schema.outcome.name, *self.schema.names}
        position = {name: i for i, name in enumerate(self.names)}
        x = np.full((n, len(position)), np.nan, dtype=np.float32)
        for name, values in columns.items():
            if name in position:
                x[:, position[name]] = encode_values(self.features[position[name]], values, self.rules_of(name))
            elif name not in unread:
                raise FeatureError(f"There is no feature '{name}'.{did_you_mean(name, self.names)}")
        return x

    def encode_outcome(self, values: Iterable[Any]) -> np.ndarray:
        """(n,) class codes or float32 numbers of known outcomes; a class that the cohort has not is a CohortError."""
        name = self.schema.outcome.name
        if isinstance(values, str | pd.DataFrame) or not isinstance(values, Iterable):
            raise CohortError(f"The outcomes are {type_of(values)}; give a list, array or Series, one for each row.")
        texts = [str(value) if isinstance(value, str) else value for value in values]
        if self.kind == "continuous":
            numbers = [_as_number(name, value, self.rules_of(name)) for value in texts]
            return finite_vector(numbers, name).astype(np.float32)
        codes = codes_of(self.classes, by_value=False)
        found = [value_text(value) for value in texts]
        for row, (text, value) in enumerate(zip(found, texts, strict=True)):
            if not text or value is None or value is pd.NA or value is pd.NaT:
                raise CohortError(f"Row {row} has no outcome '{name}'. Leave such rows out.")
            if text not in codes:
                raise CohortError(f"'{text}' is not a class of '{name}'.{did_you_mean(text, codes)}")
        return np.array([codes[text] for text in found], dtype=np.int64)

    def decode(self, feature_name: str, code: float) -> str:
        """A value of x as a person reads it: '3.1', 'female', 'other', or '' where not measured."""
        feature = self.feature(feature_name)
        if code != code:
            return ""
        if feature.kind == "number":
            return number_text(float(str(np.float32(code))))
        if not float(code).is_integer() or not 0 <= code <= len(feature.levels):
            raise FeatureError(f"{code} is not a code of '{feature_name}', which has {len(feature.levels)} levels.")
        return (*feature.levels, OTHER)[int(code)]

    # Subsets and the way back

    def rows(self, index) -> Cohort:
        """The rows that `index` (integers, a slice or a mask) picks, under the same schema."""
        of_source, patients = (None if of is None else of[index] for of in (self.source_rows, self.kept_patients))
        return replace(self, x=self.x[index], y=self.y[index], source_rows=of_source, kept_patients=patients)

    def without_table(self) -> Cohort:
        """The same cohort without the table it was read from, whose unused columns are nobody else's to see; which rows
        are of one patient stays known."""
        return replace(self, source=None, source_rows=None, kept_patients=self.patients)

    def frame(self) -> pd.DataFrame:
        """The cohort's rows with every column that was read: numbers, and texts (None where missing)."""
        if self.source is None:
            return self._frame_of_arrays()
        stated = Overrides.from_schema(self.schema)
        kinds = {name: how_to_read(settings) for name, settings in stated.features.items()}
        kinds[self.schema.outcome.name] = how_to_read(stated.outcome)
        table = self.source
        columns: dict[str, Any] = dict.fromkeys(table.names)
        levels = levels_of(stated)
        for name, reading in read_columns(table.names, table.columns, table.row_numbers, kinds, self.rules, levels):
            if reading.numbers is not None:
                columns[name] = reading.numbers[self.source_rows]
            else:
                texts = np.array([*reading.texts, None], dtype=object)
                columns[name] = pd.Series(texts[reading.codes[self.source_rows]], dtype=object)
        frame = pd.DataFrame(columns)
        frame.attrs[READ_BY] = table.reading
        if self.rules != DEFAULT_RULES:
            frame.attrs[READ_AS] = self.rules.stated()
        if commas := sorted(name for name, sign in self.decimals.items() if sign == ","):
            frame.attrs[OF_COMMAS] = commas
        return frame

    def under(self, schema: Overrides) -> Cohort:
        """The same table under another schema. Its cells, and further values, are read as they were."""
        changed = Cohort.from_frame(self.frame(), schema=schema, name=self.name, **self.rules.stated())
        return replace(changed, decimals={**changed.decimals, **self.decimals})

    def _frame_of_arrays(self) -> pd.DataFrame:
        columns: dict[str, Any] = {}
        for i, feature in enumerate(self.features):
            texts = np.array([*feature.levels, OTHER, None], dtype=object)
            codes = np.where(self.r[:, i], self.x[:, i], len(texts) - 1)
            columns[feature.name] = self.x[:, i].copy() if feature.kind == "number" else texts[codes.astype(int)]
        outcome = self.y.copy() if self.kind == "continuous" else np.array(self.classes, dtype=object)[self.y]
        columns[self.schema.outcome.name] = outcome
        return pd.DataFrame(columns)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a command tells of the table that it has read: its warnings, and numbers that may mean 'not measured'."""
        return (*self.warnings, *doubtful_values(self))

    def diagnostics(self) -> Diagnostics:
        """What to know before trusting an answer from this cohort."""
        return diagnose(self)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _as_number(name, value, rules) -> Any:
    """An outcome as a number, where it is a text."""
    try:
        return code_of(Feature(name), value, rules) if isinstance(value, str) else value
    except FeatureError as error:
        raise CohortError(str(error)) from error
