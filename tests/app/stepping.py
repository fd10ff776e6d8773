"""Steps as a person takes them, by the page's widgets."""

from html import unescape

import numpy as np
from streamlit.testing.v1 import AppTest

from app.store import StoredCohort
from app.ui.step_through import stored_events
from l2m_core.cohort import Cohort
from tests.app.conftest import check, open_app, press, small_frame

NAMES = ("age", "sex", "lactate", "sodium", "potassium", "scan")


def begin(ward: StoredCohort, **values) -> AppTest:
    """A step-through that has begun, at its first step."""
    app = open_app("step_through", cohort=ward.id)
    for name, value in (values or {"age": 71.0}).items():
        key = f"start-{ward.id}-{NAMES.index(name)}"
        (app.number_input(key=key) if name == "age" else app.selectbox(key=key)).set_value(value)
    app.text_input(key="start-title").set_value("Bed 4")
    return press(app, "start-submit")


def step_id(app: AppTest) -> str:
    return str(app.query_params["step"])


def turn_to(app: AppTest, name: str) -> AppTest:
    box = next(box for box in app.selectbox if box.key and box.key.startswith("step-test"))
    return app if box.value == name else check(box.set_value(name).run())


def set_rule(app: AppTest, rule: str, limit: float | str) -> AppTest:
    """Fill one of the rules in, and save."""
    fields = [*app.number_input, *app.selectbox]
    next(field for field in fields if field.key and field.key.endswith(f"-{rule}")).set_value(limit)
    return press(app, "rules-save")


def enter(app: AppTest, name: str, value) -> AppTest:
    """Turn to a test, type its result, press Record."""
    app = turn_to(app, name)
    key = f"value-{step_id(app)}-{NAMES.index(name)}"
    (app.selectbox(key=key) if name == "scan" else app.number_input(key=key)).set_value(value)
    return press(app, "record-submit")


def recorded(owner: str, app: AppTest) -> stored_events.Record:
    return stored_events.read(owner, step_id(app))


def kinds(owner: str, app: AppTest) -> list[str]:
    return [event.kind for event in recorded(owner, app).events]


def outcome_cohort(kind: str) -> Cohort:
    frame = small_frame().drop(columns="died")
    draw = np.random.default_rng(5)
    base = frame.lactate.fillna(2).to_numpy()
    frame["stay"] = (3 + 2 * base + draw.normal(0, 1, len(frame))).round(1)
    if kind == "multiclass":
        frame["stay"] = np.digitize(frame["stay"], [5, 8]).astype(str)
        frame["stay"] = frame["stay"].map({"0": "short", "1": "medium", "2": "long"})
    schema = {"features": [{"name": "age", "role": "baseline"}]}
    return Cohort.from_frame(frame, outcome="stay", schema=schema, name=kind)


def verdict_line(app: AppTest) -> str:
    (line,) = (found for html in app.get("html") if (found := str(html.proto.body)).startswith('<p class="l2m-verdict'))
    return unescape(line).replace("\u2060", "")
