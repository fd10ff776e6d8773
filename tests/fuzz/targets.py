"""What reads files that others wrote, the files that damage begins with, and what holds of whatever is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import yaml

from l2m_core.answering.release import FACTS, load_release, save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.learn.checkpoints import checksum
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.schema import Schema
from l2m_core.settings import build_settings, parse_settings, to_plain
from l2m_core.step_through.trace import Trace
from l2m_core.tables.reading import read_table
from l2m_core.tables.reading_notes import reading_report
from tests.fuzz.mutations import altered, as_json, as_yaml, damaged
from tests.prerequisites import REPOSITORY
from tests.tables.exported_files import exported_files
from train.__main__ import JOBS, settings_of

CONFIG = ModelConfig(layers=1, width=16, heads=2, feedforward=16)
WEIGHTS = "weights-00.safetensors"


@dataclass(frozen=True)
class Target:
    """read: raises an L2MError where it refuses the bytes, and an AssertionError where what it read does not hold."""

    seeds: tuple[bytes, ...]
    read: Callable[[bytes], Any]
    load: Callable[[bytes], Any] | None = None
    dump: Callable[[Any], bytes] | None = None

    def case(self, random: Random) -> bytes:
        seed = random.choice(self.seeds)
        if self.load is not None and self.dump is not None and random.random() < 0.6:
            with suppress(RecursionError):
                return self.dump(altered(self.load(seed), random))
        return damaged(seed, random)


def targets(folder: Path) -> dict[str, Target]:
    """folder: an empty one, for a model."""
    save_model(folder / "model", build_model(CONFIG), CONFIG, TrainedRange(), AnswerSettings(), {})
    facts, weights = (folder / "model" / FACTS).read_bytes(), (folder / "model" / WEIGHTS).read_bytes()
    traces = (REPOSITORY / "tests" / "golden" / "kept" / "traces").glob("*.json")
    configs = (REPOSITORY / "train" / "configs").glob("*.yaml")
    tables = tuple(file.data for number, file in enumerate(exported_files()) if number % 9 == 0)
    return {
        "table": Target(tables, read_cohort),
        "schema": Target((SCHEMA.encode(),), read_schema, yaml.safe_load, as_yaml),
        "trace": Target(tuple(path.read_bytes() for path in sorted(traces)), read_trace, json.loads, as_json),
        "settings": Target(
            tuple(path.read_bytes() for path in sorted(configs)), read_settings, yaml.safe_load, as_yaml
        ),
        "model": Target((facts,), lambda data: read_model(folder / "model", data, weights), yaml.safe_load, as_yaml),
        "weights": Target((weights,), lambda data: read_model(folder / "model", facts, data)),
    }


SCHEMA = """
outcome: {name: died, kind: binary, classes: [alive, dead], description: within 30 days}
features:
- {name: age, role: baseline, unit: years, minimum: 0, maximum: 120}
- {name: lactate, cost: 12.5, turnaround: 15, group: gas, reference_low: 0.5, reference_high: 2.0, unit: mmol/L}
- {name: sex, kind: binary, levels: [F, M], role: baseline}
- {name: ward, kind: category, levels: ['250.1', icu, NA], description: 'first: ward'}
- {name: record, role: ignored}
"""


def read_cohort(data: bytes) -> None:
    """Its arrays are finite, it is told of, and it comes back the same from what is stored of it."""
    table = read_table(data)
    cohort = Cohort.from_table(table, table.names[-1])
    assert np.isfinite(cohort.x[cohort.r]).all() and len(cohort.x) == len(cohort.y)
    assert {name for note in reading_report(cohort) for name in note.columns} <= set(table.names)
    opened = cohort.read_back(cohort.frame(), cohort.schema.to_yaml())
    assert opened.content_hash == cohort.content_hash
    cohort.diagnostics()


def read_schema(data: bytes) -> None:
    schema = Schema.from_yaml(_text(data))
    assert Schema.from_yaml(schema.to_yaml()) == schema


def read_trace(data: bytes) -> None:
    trace = Trace.from_json(_text(data))
    assert Trace.from_json(trace.to_json()).to_json() == trace.to_json()
    trace.to_csv()


def read_settings(data: bytes) -> None:
    """As settings of each job, and of a model folder: of one at most they are, and then they come back the same."""
    given = parse_settings(_text(data))
    refusals = []
    for kind in (*map(settings_of, JOBS), ModelConfig, AnswerSettings, TrainedRange):
        try:
            settings = build_settings(kind, given)
        except ConfigError as refusal:
            refusals.append(refusal)
            continue
        assert to_plain(build_settings(kind, to_plain(settings))) == to_plain(settings)
    assert all(map(str, refusals))


def read_model(folder: Path, facts: bytes, weights: bytes) -> None:
    """The checksum of the weights is right, as whoever means harm would write it."""
    (folder / WEIGHTS).write_bytes(weights)
    with suppress(yaml.YAMLError, UnicodeDecodeError, AttributeError, KeyError, TypeError, RecursionError, ValueError):
        plain = yaml.safe_load(facts)
        if WEIGHTS in plain["checksums"]:
            plain["checksums"][WEIGHTS] = checksum(folder / WEIGHTS)
            facts = as_yaml(plain)
    (folder / FACTS).write_bytes(facts)
    load_release(folder)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass") if _is_text(data) else data.decode("utf-8", "replace")


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True
