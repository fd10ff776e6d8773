"""Patient: one step-through, immutable. Every action returns a new patient; undo is therefore free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.acquire.policies import Policy, block, gains_of, make_policy
from l2m_core.acquire.stopping import Stopping
from l2m_core.acquire.support import support_of
from l2m_core.answering.engine import Answer, ConditionedModel
from l2m_core.answering.predictive import Predictive
from l2m_core.errors import FeatureError, InputError
from l2m_core.lazy import lazy
from l2m_core.step_through.events import Event, State, effective, fold
from l2m_core.step_through.trace import Trace
from l2m_core.tables.entered_values import enter_value


@dataclass(frozen=True)
class Candidate:
    """An acquirable feature as it stands for one patient."""

    feature: str
    score: float
    """What the policy ranks by; -inf where the feature is not open."""
    gain: float
    """In nats; NaN where the feature is known."""
    policy: float
    """The policy head's probability of the feature among the open ones."""
    cost: float
    gain_per_cost: float
    turnaround: float | None
    group: str | None
    status: str
    """open, known, unavailable, declined or pending."""
    support: int
    """Cohort rows in which it was recorded."""
    support_near: int
    """The same, among the rows near this patient."""


@dataclass(frozen=True)
class Driver:
    """A known value, and how much the answer depends on it."""

    feature: str
    change: float
    """Total variation between the posterior with and without it (classes), or the shift of the mean in standard deviations
    (continuous)."""
    gain_without: float
    """The gain head's value for the suggested test, had this value not been known."""


@dataclass(frozen=True, eq=False)
class Patient:
    """What is known of one patient, and what a conditioned model makes of it."""

    memory: ConditionedModel
    events: tuple[Event, ...]
    stopping: Stopping = field(default_factory=Stopping)
    policy: str | Policy | None = None

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
        values = _checked(memory, values)
        first = Event("start", values=values, limits=limits or {}, **event)
        return cls(memory, (first,), stopping or Stopping(), policy)

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
        for event in events:
            for name, entered in _checked(memory, event.values).items():
                if entered is None and event.values[name] is not None:
                    raise FeatureError(_not_measured(name, event.values[name]) + " It cannot have been recorded.")
            for name in event.features:
                memory.cohort.feature(name)
        return cls(memory, tuple(events), stopping or Stopping(), policy)

    # -- actions ----------------------------------------------------------------------------------------------------

    def observe(
        self,
        what: str | Mapping[str, Any],
        value: Any = None,
        *,
        limits: Mapping[str, str] | None = None,
        reason: str = "",
        **event: Any,
    ) -> Patient:
        """Records one result, or a panel of them: `observe("lactate", 3.1)` or `observe({"na": 140, "k": 4.1})`."""
        given = {what: value} if isinstance(what, str) else what
        values = _checked(self.memory, given)
        if not values:
            raise FeatureError("No value is given for any feature. Enter a result, or say that it is unavailable.")
        for name, entered in values.items():
            if entered is None:
                raise FeatureError(_not_measured(name, given[name]) + " Enter a result, or say that it is unavailable.")
            if name in self.state.values:
                raise FeatureError(f"'{name}' is already known; use correct to change it.")
        return self._with(
            Event("observe", values, limits=limits or {}, suggested=self.suggestion, reason=reason, **event)
        )

    def correct(self, name: str, value: Any, *, limit: str | None = None, reason: str = "", **event: Any) -> Patient:
        """Changes an earlier value by a new event (None takes it back); the old one stays in the record."""
        if name not in self.state.values:
            raise FeatureError(f"'{name}' has no value to correct; use observe to record one.")
        values = _checked(self.memory, {name: value})
        if values[name] is None and value is not None:
            raise FeatureError(_not_measured(name, value) + " Enter the right value, or None to take it back.")
        limits = {name: limit} if limit else {}
        return self._with(Event("correct", values, limits=limits, reason=reason, **event))

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
        return self.memory.cohort.encode(dict(self.state.values))

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
    def posterior(self) -> np.ndarray | Predictive:
        """(classes,) probabilities in the order of memory.classes, or a Predictive of one row."""
        prediction = self.answer.prediction
        return prediction[0] if isinstance(prediction, np.ndarray) else prediction

    @property
    def ranking(self) -> pd.DataFrame:
        """Every acquirable feature, best first, as a table; its columns are the fields of `Candidate`."""
        return _table_of(Candidate, self.tests)

    @lazy
    def tests(self) -> tuple[Candidate, ...]:
        """Every acquirable feature, best first."""
        cohort = self.memory.cohort
        rule = make_policy(self.policy, self.memory.release.inference.policy)
        raw_scores = rule.scores(self.memory, self.x, self.answer)
        gains = gains_of(rule, raw_scores, self.answer)[0]
        scores = block(raw_scores, self.x, cohort.acquirable, self._possible)[0]
        share = _softmax(block(self.answer.policy, self.x, cohort.acquirable, self._possible)[0])
        overall, near = self.support
        tests = []
        for i, feature in enumerate(cohort.features):
            if feature.role != "acquirable":
                continue
            cost = float(cohort.costs[i])
            status = self.state.statuses.get(feature.name, "known" if feature.name in self.state.values else "open")
            gain = float(gains[i]) if status != "known" else np.nan
            tests.append(
                Candidate(
                    feature.name,
                    float(scores[i]),
                    gain,
                    float(share[i]),
                    cost,
                    gain / cost if cost > 0 else float("nan"),
                    feature.turnaround,
                    feature.group,
                    status,
                    int(overall[i]),
                    int(near[i]),
                )
            )
        return tuple(sorted(tests, key=lambda test: -test.score))

    @property
    def _possible(self) -> np.ndarray:
        """(1, d) bool: features that nobody has declared unavailable, declined or pending."""
        return np.array([[name not in self.state.statuses for name in self.memory.cohort.names]])

    @property
    def suggestion(self) -> str | None:
        """The feature ranked first, or None when nothing is left to ask for."""
        return self.tests[0].feature if self.tests and np.isfinite(self.tests[0].score) else None

    @property
    def advice(self) -> str | None:
        """Why to stop now, in words; None when the rules say to go on."""
        return self.advice_by(self.stopping)

    def advice_by(self, stopping: Stopping) -> str | None:
        """The same under other rules than the patient's own."""
        return stopping.reason(self.answer.prediction, self.best_gain, self.steps, self.spent)

    @property
    def open_gains(self) -> dict[str, float]:
        """Open feature → nats, best first."""
        return {test.feature: test.gain for test in self.tests if test.status == "open"}

    @property
    def best_gain(self) -> float:
        """In nats, of all open tests; -inf when none is open."""
        return max(self.open_gains.values(), default=-np.inf)

    def until(self, count: int) -> Patient:
        """The patient as of the first `count` events."""
        return replace(self, events=self.events[:count])

    # -- why --------------------------------------------------------------------------------------------------------

    @lazy
    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """(d,) cohort rows with each feature recorded, and (d,) among the rows nearest to this patient."""
        return support_of(self.memory, self.x)

    @property
    def is_cached(self) -> bool:
        """Whether the answer for what is known now is cached, so that `tests` costs nothing."""
        return self.memory.is_cached(self.x)

    def prefetch(self, name: str) -> None:
        """Queries in one batch all that `posterior`, `preview(name)` and `drivers` will need: that costs little more than
        one query."""
        previewed = self._with_values(name, self._results_to_try(name)[0])
        self.memory.answer(np.concatenate([self.x, previewed, self._without_each()]))

    def preview(self, name: str) -> pd.DataFrame:
        """What a result would do, before ordering: value, label, and the posterior after it.

        Numbers: the 10th, 50th and 90th percentile recorded in the cohort; categories: each level.
        """
        values, labels = self._results_to_try(name)
        after = self.memory.answer(self._with_values(name, values)).prediction
        table = pd.DataFrame({"result": labels, "value": [self.memory.cohort.decode(name, v) for v in values]})
        return pd.concat([table, _posterior_columns(self.memory, after)], axis=1)

    def _results_to_try(self, name: str) -> tuple[list[float], list[str]]:
        """Results that `preview` tries, and what they are called."""
        cohort = self.memory.cohort
        feature = cohort.feature(name)
        if feature.kind != "number":
            return [float(v) for v in range(len(feature.levels))], list(feature.levels)
        values = self.memory.typical[:, cohort.names.index(name)].tolist()
        return values, ["low (10th percentile)", "typical (median)", "high (90th percentile)"]

    def drivers(self) -> pd.DataFrame:
        """The known values by how much the answer depends on each, as a table; its columns are the fields of `Driver`."""
        return _table_of(Driver, self.driving)

    @lazy
    def driving(self) -> tuple[Driver, ...]:
        """The known values, most influential first: each is left out in turn."""
        names = self._known_names()
        if not names:
            return ()
        without = self.memory.answer(self._without_each())
        now = self.answer.prediction
        if isinstance(now, np.ndarray):
            change = 0.5 * np.abs(without.prediction - now).sum(-1)
        else:
            change = np.abs(without.prediction.mean - now.mean) / now.std
        top = self.suggestion
        column = self.memory.cohort.names.index(top) if top else None
        gain = without.gain[:, column] if column is not None else np.full(len(names), np.nan)
        found = map(Driver, names, change.tolist(), gain.tolist())
        return tuple(sorted(found, key=lambda driver: -driver.change))

    def _known_names(self) -> list[str]:
        return [name for name in self.memory.cohort.names if name in self.state.values]

    def _without_each(self) -> np.ndarray:
        """(known features, d): one row for each known value, with that value left out."""
        names = self._known_names()
        x = np.repeat(self.x, len(names), axis=0)
        for row, name in enumerate(names):
            x[row, self.memory.cohort.names.index(name)] = np.nan
        return x

    def band(self, resampled: Sequence[ConditionedModel], level: float = 0.9) -> pd.DataFrame:
        """How far the posterior moves under resampled cohorts: for each class (or the mean) low, value, high."""
        answers = [memory.answer(self.x).prediction for memory in resampled]
        edge = (1 - level) / 2
        if isinstance(self.answer.prediction, np.ndarray):
            names, value = list(self.memory.classes), self.answer.prediction[0]
        else:
            names, value = ["mean"], self.answer.prediction.mean
        drawn = np.stack([answer[0] if isinstance(answer, np.ndarray) else answer.mean for answer in answers])
        low, high = np.quantile(drawn, [edge, 1 - edge], axis=0)
        return pd.DataFrame(
            {"outcome": names, "low": np.minimum(low, value), "value": value, "high": np.maximum(high, value)}
        )

    def stability(self, resampled: Sequence[ConditionedModel]) -> pd.Series:
        """Share of resampled cohorts in which each open feature would come first; by feature, largest first."""
        cohort = self.memory.cohort
        rule = make_policy(self.policy, self.memory.release.inference.policy)
        firsts: dict[str, int] = {}
        for memory in resampled:
            scores = block(
                rule.scores(memory, self.x, memory.answer(self.x)), self.x, cohort.acquirable, self._possible
            )[0]
            if np.isfinite(scores).any():
                name = cohort.names[int(scores.argmax())]
                firsts[name] = firsts.get(name, 0) + 1
        share = pd.Series({name: count / len(resampled) for name, count in firsts.items()}, dtype=float)
        return share.sort_values(ascending=False, kind="stable")

    @property
    def trace(self) -> Trace:
        """Every step so far."""
        return Trace.of(self)

    def _with_values(self, name: str, values: Sequence[float]) -> np.ndarray:
        x = np.repeat(self.x, len(values), axis=0)
        x[:, self.memory.cohort.names.index(name)] = values
        return x


def _checked(memory: ConditionedModel, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, plain and checked one by one against the schema; None stays None."""
    if not isinstance(values, Mapping):
        raise FeatureError(f"Values must be a mapping of feature to value; a {type(values).__name__} is none.")
    cohort = memory.cohort
    return {name: enter_value(cohort.feature(name), value, cohort.rules_of(name))[0] for name, value in values.items()}


def _not_measured(name: str, value: Any) -> str:
    if value is None:
        return f"No value is given for '{name}'."
    return f"'{name}' = {value!r:.60} stands for \"not measured\" in this cohort."


def _posterior_columns(memory: ConditionedModel, prediction: np.ndarray | Predictive) -> pd.DataFrame:
    if isinstance(prediction, np.ndarray):
        return pd.DataFrame(prediction, columns=[f"p({name})" for name in memory.classes])
    return pd.DataFrame({"mean": prediction.mean, "std": prediction.std})


def _softmax(logits: np.ndarray) -> np.ndarray:
    if not np.isfinite(logits).any():
        return np.zeros_like(logits)
    weight = np.exp(logits - logits.max())
    return weight / weight.sum()


def _table_of(kind: type, rows: Sequence[Any]) -> pd.DataFrame:
    """One row for each record, one column for each field of its class."""
    return pd.DataFrame([vars(row) for row in rows], columns=[field.name for field in fields(kind)])
