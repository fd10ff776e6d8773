"""The app's pages in process, with the real store and the real model, and a small cohort."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app.host import identity, services
from app.settings import AppSettings
from app.store import StoredCohort
from app.ui import state
from app.ui.traces import loading
from l2m_core.cohort import Cohort
from l2m_core.schema import Feature, Outcome, Schema
from tests.prerequisites import REPOSITORY

Restart = Callable[[], services.Services]
PATIENCE = 300  # seconds; a busy machine is slow


def small_frame(rows: int = 80) -> pd.DataFrame:
    draw = np.random.default_rng(3)
    ill = draw.random(rows) < 0.4
    frame = pd.DataFrame(
        {
            "age": draw.normal(60, 10, rows).round(),
            "sex": draw.choice(["f", "m"], rows),
            "lactate": (1.5 + 1.5 * ill + draw.normal(0, 0.7, rows)).clip(0.2).round(1),
            "sodium": draw.normal(140, 4, rows).round(),
            "potassium": draw.normal(4.2, 0.5, rows).round(1),
            "scan": draw.choice(["clear", "doubtful", "dense"], rows),
            "died": np.where(ill, "yes", "no"),
        }
    )
    frame.loc[draw.random(rows) < 0.3, "lactate"] = np.nan
    return frame


def small_cohort() -> Cohort:
    features = (
        Feature("age", role="baseline", unit="years", minimum=0, maximum=120),
        Feature("sex", kind="binary", role="baseline", levels=("f", "m")),
        Feature("lactate", unit="mmol/L", cost=12, turnaround=30, minimum=0, maximum=40, reference_high=2),
        Feature("sodium", unit="mmol/L", cost=5, group="salts"),
        Feature("potassium", unit="mmol/L", cost=5, group="salts"),
        Feature("scan", kind="category", levels=("clear", "dense", "doubtful"), cost=80),
    )
    schema = Schema(features, Outcome("died", classes=("no", "yes")))
    return Cohort.from_frame(small_frame(), schema=schema, name="ward")


@pytest.fixture(scope="session")
def shared_services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[services.Services]:
    """One store and one loaded model for all page tests; each test has its own owner's things apart anyway.

    Without councils, which would be fitted for each test's cohort and be heard in those tests alone that are slow enough.
    """
    data_dir = tmp_path_factory.mktemp("data")
    made = services.Services(AppSettings(data_dir, f"sqlite:///{data_dir / 'l2m.sqlite3'}", council=False))
    services.reset(lambda: made)
    yield made
    services.reset()


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> str:
    """A fresh browser for each test, and no waiting between two presses of one kind."""
    monkeypatch.setattr(state, "ECHO_SECONDS", 0.0)
    monkeypatch.setattr(services, "RESAMPLES", services.FEWEST_RESAMPLES)
    browser = np.random.default_rng().bytes(16).hex()
    monkeypatch.setattr(state, "browser_of_cookie", lambda: browser)
    return identity.browser_owner(browser)


@pytest.fixture
def restart(shared_services: services.Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Restart]:
    """Puts fresh services over the same store in place, as a restart of the server does: nothing is in memory."""
    started = []

    def start_again() -> services.Services:
        started.append(services.Services(shared_services.settings))
        monkeypatch.setattr(services, "get", lambda: started[-1])
        return started[-1]

    yield start_again
    for made in started:
        made.shut_down()
        made.store.close()


@pytest.fixture
def ward(shared_services: services.Services, owner: str) -> StoredCohort:
    return shared_services.add_cohort(owner, small_cohort())


@pytest.fixture
def loaded(shared_services: services.Services, owner: str, ward: StoredCohort) -> loading.LoadedTrace:
    from tests.app.recorded import eventful, keep, memory_of  # which builds on this file

    patient = eventful(memory_of(shared_services, owner, ward))
    return loading.load(owner, keep(shared_services, owner, ward, patient).id)


@pytest.fixture
def someone_else() -> str:
    return identity.browser_owner(np.random.default_rng().bytes(16).hex())


def open_app(page: str = "cohort", **query: str) -> AppTest:
    app = AppTest.from_file(str(REPOSITORY / "app" / "main.py"), default_timeout=PATIENCE)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    if page != "cohort":
        app.switch_page(f"views/{page}.py").run()
    return check(app)


def check(app: AppTest) -> AppTest:
    assert not app.exception, [exception.message for exception in app.exception]
    return app


def press(app: AppTest, key: str) -> AppTest:
    return check(app.button(key=key).click().run())


def texts(app: AppTest) -> str:
    """Everything that the page says, without the marks that keep names from being read as markdown."""
    parts = [
        element.value
        for kind in ("title", "subheader", "markdown", "caption", "error", "warning", "info", "success")
        for element in app.get(kind)
    ]
    parts += [button.label for button in app.button]
    parts += [link.proto.label for link in app.get("page_link")]
    return "\n".join(str(part) for part in parts).replace("\u2060", "").replace("\\", "")
