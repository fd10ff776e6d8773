"""Patient: one step-through, immutable. Every action returns a new patient; undo is therefore free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.acquire.foreseen import is_too_rare
from l2m_core.acquire.information import Outlook, outlooks
from l2m_core.acquire.policies import Gain, Policy, make_policy
from l2m_core.acquire.stopping import Stopping
from l2m_core.answering.class_probabilities import ClassProbabilities
from l2m_core.answering.engine import Answer, ConditionedModel
from l2m_core.answering.predictive import Predictive
from l2m_core.errors import FeatureError, InputError, type_of
from l2m_core.lazy import lazy
from l2m_core.step_through.candidates import Candidate, followed_move, rank_candidates, share_ranked_first
from l2m_core.step_through.events import Event, State, effective, fold
from l2m_core.step_through.explanation import Driver, drivers_of, resampled_band, without_each
from l2m_core.step_through.preview import expected_results, preview, results_to_try, with_results
from l2m_core.step_through.trace import Trace
from l2m_core.tables.cell_parsing import entered_text
from l2m_core.tables.entered_values import enter_value


@dataclass(frozen=True, eq=False)
class Patient:
    """What is known of one patient, and what a conditioned model makes of it."""

    memory: ConditionedModel
    events: tuple[Event, ...]
    stopping: Stopping = field(default_factory=Stopping)
    policy: str | Policy | None = None

    def __repr__(self) -> str:
        """Without values, which may find their way into a log."""
        known, cohort = len(self.state.values), self.memory.cohort
        return f"Patient({known} of {len(cohort.names)} features known, {self.steps} measured, on {cohort!r})"

    @classmethod
    def start(
        cls,
        memory: ConditionedModel,
        values: Mapping[str, Any],
        *,
        limits: Mapping[str, str] | None = None,
        stopping: Stopping | None = None,
        policy: str | Policy | None = None,
        **event: Any,
    ) -> Patient:
        values, codes = _checked(memory, values)
        first = Event("start", values=values, limits=limits or {}, codes=codes, **event)
        return cls(memory, (first,), Stopping.checked(stopping), policy)

    @classmethod
    def replay(
        cls,
        memory: ConditionedModel,
        events: Sequence[Event],
        *,
        stopping: Stopping | None = None,
        policy: str | Policy | None = None,
    ) -> Patient:
        """The patient that a stored list of events leads to; its values are checked as when they were entered."""
        if not events or events[0].kind != "start":
            raise InputError("A step-through must begin with a 'start' event.")
        checked = []
        for event in events:
            values, codes = _checked(memory, event.values)
            for name, entered in values.items():
                if entered is None and event.values[name] is not None:
                    raise FeatureError(_not_measured(name, event.values[name]) + " It cannot have been recorded.")
            for name in event.features:
                memory.cohort.feature(name)
            checked.append(replace(event, codes=codes))
        return cls(memory, tuple(checked), Stopping.checked(stopping), policy)

    # -- actions ----------------------------------------------------------------------------------------------------

    def observe(
        self,
        what: str | Mapping[str, Any],
        value: Any = None,
        *,
        limit: str | None = None,
        limits: Mapping[str, str] | None = None,
        reason: str = "",
        **event: Any,
    ) -> Patient:
        """Records one result, or a panel of them: `observe("lactate", 3.1)` or `observe({"na": 140, "k": 4.1})`.

        limit: "below" or "above", where the value is a detection limit; of a panel, limits by feature.
        """
        if limit is not None:
            if not isinstance(what, str) or limits is not None:
                raise FeatureError("A limit is of one feature; of several, give limits={feature: 'below' or 'above'}.")
            limits = {what: limit}
        if not isinstance(what, str) and value is not None:
            raise FeatureError(
                f"The value {value!r:.60} is of no feature. Give observe a name and its value, or a mapping alone."
            )
        given = {what: value} if isinstance(what, str) else what
        values, codes = _checked(self.memory, given)
        if not values:
            raise FeatureError("No value is given for any feature. Enter a result, or say that it is unavailable.")
        for name, entered in values.items():
            if entered is None:
                raise FeatureError(_not_measured(name, given[name]) + " Enter a result, or say that it is unavailable.")
            if name in self.state.values:
                raise FeatureError(f"'{name}' is already known; use correct to change it.")
        return self._with(
            Event(
                "observe", values, limits=limits or {}, suggested=self.suggestion, reason=reason, codes=codes, **event
            )
        )

    def correct(self, name: str, value: Any, *, limit: str | None = None, reason: str = "", **event: Any) -> Patient:
        """Changes an earlier value by a new event (None takes it back); the old one stays in the record."""
        if name not in self.state.values:
            raise FeatureError(f"'{name}' has no value to correct; use observe to record one.")
        values, codes = _checked(self.memory, {name: value})
        if values[name] is None and value is not None:
            raise FeatureError(_not_measured(name, value) + " Enter the right value, or None to take it back.")
        limits = {name: limit} if limit else {}
        return self._with(Event("correct", values, limits=limits, reason=reason, codes=codes, **event))

    def unavailable(self, *names: str, reason: str = "", **event: Any) -> Patient:
        """These tests cannot be had; they are not suggested again."""
        return self._mark("unavailable", names, reason, event)

    def declined(self, *names: str, reason: str = "", **event: Any) -> Patient:
        return self._mark("declined", names, reason, event)

    def pending(self, *names: str, reason: str = "", **event: Any) -> Patient:
        """Ordered, no result yet; not suggested meanwhile."""
        return self._mark("pending", names, reason, event)

    def undo(self, **event: Any) -> Patient:
        if len(effective(self.events)) < 2:
            raise InputError("There is nothing to undo.")
        return self._with(Event("undo", **event))

    def stop(self, reason: str = "", **event: Any) -> Patient:
        return self._with(Event("stop", reason=reason, **event))

    def reopen(self, **event: Any) -> Patient:
        return self._with(Event("reopen", **event))

    def _mark(self, kind: str, names: tuple[str, ...], reason: str, event: dict[str, Any]) -> Patient:
        if not names:
            raise FeatureError(f"Name the test that is {kind}.")
        for name in names:
            self.memory.cohort.feature(name)
        return self._with(Event(kind, features=names, suggested=self.suggestion, reason=reason, **event))

    def _with(self, event: Event) -> Patient:
        return replace(self, events=(*self.events, event))

    # -- what is known ----------------------------------------------------------------------------------------------

    @lazy
    def state(self) -> State:
        return fold(self.events)

    @lazy
    def x(self) -> np.ndarray:
        """(1, d) float32, NaN where unknown."""
        names = self.memory.cohort.names
        return np.array([[self.state.codes.get(name, np.nan) for name in names]], dtype=np.float32)

    @property
    def known(self) -> dict[str, Any]:
        """Feature → value as entered."""
        return dict(self.state.values)

    @property
    def steps(self) -> int:
        """Actions taken since the start."""
        return len(self.state.acquired)

    @property
    def spent(self) -> float:
        """Cost so far: an action pays once for every panel, and for every test by itself, as in a roll-out."""
        return self.memory.cohort.schema.spent(self.state.acquired)

    # -- what the model makes of it ---------------------------------------------------------------------------------

    @lazy
    def answer(self) -> Answer:
        return self.memory.answer(self.x)

    @property
    def posterior(self) -> ClassProbabilities | Predictive:
        """(classes,) probabilities in the order of memory.classes, also asked by a class's name; or a Predictive of one row."""
        prediction = self.answer.prediction
        if isinstance(prediction, np.ndarray):
            return ClassProbabilities(prediction[0], self.memory.classes)
        return prediction

    @property
    def ranking(self) -> pd.DataFrame:
        """Every acquirable feature, best first, as a table; its columns are the fields of `Candidate`."""
        return _table_of(Candidate, self.tests)

    @lazy
    def tests(self) -> tuple[Candidate, ...]:
        """Every acquirable feature, best first."""
        return rank_candidates(self.memory, self.state, self.x, self.answer, self._rule)

    @property
    def _rule(self) -> Policy:
        return make_policy(self.policy, self.memory.release.inference.policy)

    @property
    def suggestion(self) -> str | None:
        """The feature ranked first of those that the cost budget still pays for, as in a roll-out; of all that are open where it
        pays for none, which `advice` says. None when nothing is left to ask for."""
        return self.suggestion_by(self.stopping)

    def suggestion_by(self, stopping: Stopping) -> str | None:
        """The same under other rules than the patient's own."""
        first = next(iter(self._payable(stopping) or self._open_tests), None)
        return first.feature if first else None

    @property
    def _open_tests(self) -> tuple[Candidate, ...]:
        """Best first."""
        return tuple(test for test in self.tests if np.isfinite(test.score))

    def _payable(self, stopping: Stopping) -> tuple[Candidate, ...]:
        """Of the open tests those that the cost budget still pays for, best first."""
        return tuple(test for test in self._open_tests if stopping.pays_for(test.cost, self.spent))

    @property
    def advice(self) -> str | None:
        """Why to stop now, in words; None when the rules say to go on."""
        return self.advice_by(self.stopping)

    def advice_by(self, stopping: Stopping) -> str | None:
        """The same under other rules than the patient's own."""
        ahead = self.ahead if stopping.looks_ahead else ()
        unit = self.memory.cohort.schema.outcome.unit
        reason = stopping.reason(self.answer.prediction, self.best_gain, self.steps, self.spent, ahead, unit)
        if reason or not self._open_tests or self._payable(stopping):
            return reason
        cheapest, left = min(test.cost for test in self._open_tests), stopping.cost_left(self.spent)
        return f"The cheapest test left costs {entered_text(cheapest)}, and {entered_text(left)} is left of the cost budget."

    @lazy
    def ahead(self) -> tuple[Outlook, ...]:
        """Of the open tests that could move the belief most, what each may lead to; none of a model that foresees nothing."""
        found: list[Outlook] = []
        most = 0.0
        for name, gain in self.open_gains.items():
            # An expected movement is at most sqrt(gain / 2) (Pinsker's inequality), so the rest cannot move it more.
            if len(found) >= Gain().most or (found and np.sqrt(max(gain, 0.0) / 2) <= most):
                break
            outlook = self.outlook(name)
            if outlook is not None:
                found.append(outlook)
                most = max(most, outlook.movement)
        return tuple(found)

    def together(self, among: int = 4, least: float = 0.002, times: float = 1.25) -> pd.DataFrame:
        """Pairs of open tests that tell clearly more than their parts: both features, nats together, and of each alone; and how
        far both results typically move the number that is followed.

        Looked for among the best few, which may each tell little. least: nats together; times: the sum of the parts.
        """
        names = list(self.open_gains)[:among]
        cohort, found = self.memory.cohort, []
        if self.answer.values is not None:
            columns = {name: cohort.names.index(name) for name in names}
            pairs = [pair for pair in combinations(names, 2) if len({cohort.groups[columns[n]] for n in pair}) == 2]
            actions = [[columns[name] for name in pair] for pair in pairs]
            for pair, outlook in zip(
                pairs, outlooks(self.memory, self.x[0], self.answer.values[0], actions), strict=True
            ):
                parts = [self.open_gains[name] for name in pair]
                if outlook is not None and outlook.gain >= max(least, times * sum(parts)):
                    move = followed_move(outlook.typical, self.answer.prediction)
                    found.append((*pair, outlook.gain, *parts, move))
        table = pd.DataFrame(found, columns=["first", "second", "together", "first_alone", "second_alone", "move"])
        return table.sort_values("together", ascending=False, kind="stable", ignore_index=True)

    @property
    def open_gains(self) -> dict[str, float]:
        """Open feature → nats, best first; without those too rarely recorded to say."""
        return {t.feature: t.gain for t in self.tests if t.status == "open" and np.isfinite(t.gain)}

    @property
    def best_gain(self) -> float:
        """In nats, of all open tests; -inf when none is open."""
        return max(self.open_gains.values(), default=-np.inf)

    def until(self, count: int) -> Patient:
        """The patient as of the first `count` events."""
        return replace(self, events=self.events[:count])

    # -- why --------------------------------------------------------------------------------------------------------

    @property
    def is_cached(self) -> bool:
        """Whether the answer for what is known now is cached, so that `tests` costs nothing."""
        return self.memory.is_cached(self.x)

    def prefetch(self, name: str) -> None:
        """Queries in batches all that `posterior`, `tests`, `preview(name)` and `drivers` will need: that costs less than one
        query for each."""
        if self.memory.release.foresees:
            self.memory.answer(np.concatenate([self.x, without_each(self.x)]))
            if self.tests and self.state.statuses.get(name) is None:
                self.outlook(name)
            return
        values, _ = results_to_try(self.memory, name, self.outlook(name))
        previewed = with_results(self.memory, self.x, name, values)
        self.memory.answer(np.concatenate([self.x, previewed, without_each(self.x)]))

    def preview(self, name: str) -> pd.DataFrame:
        """What a result would do, before ordering: value, label, the posterior after it, and how likely the result is.

        The results that this patient may show, as the model foresees them: their chances, and the posteriors after them,
        are those that the test's gain is made of. Where nothing is foreseen: of numbers the 10th, 50th and 90th percentile
        recorded in the cohort, of categories each level, without chances. Of a category with many levels a few are tried,
        each with the chance of all that it stands for; `expect` has every level's own.
        """
        return preview(self.memory, self.x, name, self.outlook(name))

    def outlook(self, name: str) -> Outlook | None:
        """What the test alone may show and lead to; None where the model does not foresee it, or it is known."""
        column = self.memory.cohort.names.index(self.memory.cohort.feature(name).name)
        if self.answer.values is None or not np.isnan(self.x[0, column]):
            return None
        return outlooks(self.memory, self.x[0], self.answer.values[0], [[column]])[0]

    def foresees(self, name: str) -> bool:
        """Whether `expect` has an answer."""
        column = self.memory.cohort.names.index(self.memory.cohort.feature(name).name)
        return self.answer.values is not None and name not in self.known and not is_too_rare(self.memory, column)

    def expect(self, name: str, levels: float | Sequence[float] = (0.1, 0.25, 0.5, 0.75, 0.9)) -> pd.Series:
        """What the test will show this patient: of a number the quantiles at `levels`, of a category each level's chance.

        Raises where the model foresees nothing: one without a value head, a test recorded in too few rows, or one whose result
        is known.
        """
        if name in self.known:
            raise InputError(
                f"The result of '{name}' is known ({self.known[name]}): there is none to expect. Ask a patient of whom it is "
                f"not known, such as correct('{name}', None)."
            )
        return expected_results(self.memory, self.answer, name, levels)

    def drivers(self) -> pd.DataFrame:
        """The known values by how much the answer depends on each, as a table; its columns are the fields of `Driver`."""
        return _table_of(Driver, self.driving)

    @lazy
    def driving(self) -> tuple[Driver, ...]:
        """The known values, most influential first: each is left out in turn."""
        return drivers_of(self.memory, self.x, self.answer, self.suggestion)

    def band(self, resampled: Sequence[ConditionedModel], level: float = 0.9) -> pd.DataFrame:
        """How far the posterior moves under resampled cohorts: for each class (or the mean) low, value, high."""
        return resampled_band(self.memory, self.x, self.answer, resampled, level)

    def stability(self, resampled: Sequence[ConditionedModel]) -> pd.Series:
        """Share of resampled cohorts in which each open feature would come first; by feature, largest first."""
        share = pd.Series(share_ranked_first(resampled, self.state, self.x, self._rule), dtype=float)
        return share.sort_values(ascending=False, kind="stable")

    @property
    def trace(self) -> Trace:
        """Every step so far."""
        return Trace.of(self)


def _checked(memory: ConditionedModel, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, float]]:
    """The values, plain and checked one by one against the schema (None stays None), and each as x holds it."""
    if isinstance(values, pd.Series):
        values = values.to_dict()
    if not isinstance(values, Mapping):
        raise FeatureError(f"The values are {type_of(values)}; they must be a mapping of feature to value.")
    cohort = memory.cohort
    entered = {n: enter_value(cohort.feature(n), value, cohort.rules_of(n)) for n, value in values.items()}
    return {n: value for n, (value, _) in entered.items()}, {n: code for n, (_, code) in entered.items()}


def _not_measured(name: str, value: Any) -> str:
    if value is None:
        return f"No value is given for '{name}'."
    return f"'{name}' = {value!r:.60} stands for \"not measured\" in this cohort."


def _table_of(kind: type, rows: Sequence[Any]) -> pd.DataFrame:
    """One row for each record, one column for each field of its class."""
    return pd.DataFrame([vars(row) for row in rows], columns=[field.name for field in fields(kind)])
