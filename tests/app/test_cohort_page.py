"""The Cohort page: from nothing to a stored, checked, described cohort."""

import hashlib
import io
import json
import re
import uuid
from dataclasses import replace
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Expander

from app.host.services import Services
from app.store import StoredCohort
from app.ui import labels
from app.ui.uploaded_file import DRAFT
from l2m_core.cohort import Cohort
from l2m_core.schema import Schema
from tests.app.conftest import check, open_app, press, small_cohort, small_frame, texts
from tests.tables.test_measurements import long_frame, result
from tests.tables.test_restoring import FRAME, HASH, SCHEMA
from tests.tables.workbooks import workbook


def upload(app: AppTest, name: str, content: bytes) -> AppTest:
    return check(app.file_uploader(key="cohort-upload").upload(name, content).run())


def csv(frame=None) -> bytes:
    return (small_frame() if frame is None else frame).to_csv(index=False).encode()


def test_a_first_visitor_is_offered_the_bundled_cohorts(shared_services: Services, owner: str) -> None:
    app = open_app()
    assert "Chest pain triage" in texts(app) and "Research use only" in texts(app)
    app = press(app, "open-example-0")
    assert "What to know before use" in texts(app)
    (stored,) = shared_services.store.cohorts.list(owner)
    assert stored.name == "Chest pain triage" and app.query_params["cohort"] == stored.id
    rows, features, prevalence, recorded = app.metric
    assert (rows.value, features.value) == ("1,000", "20") and prevalence.value.endswith("%")


def test_opening_a_bundled_cohort_twice_stores_it_once(shared_services: Services, owner: str) -> None:
    app = press(open_app(), "open-example-2")
    press(app, "open-example-2")
    assert len(shared_services.store.cohorts.list(owner)) == 1


def test_an_upload_is_looked_over_and_saved(shared_services: Services, owner: str) -> None:
    app = upload(open_app(), "ward round.csv", csv())
    assert app.selectbox(key="draft-outcome").value == "died"
    assert shared_services.store.cohorts.list(owner) == ()
    app.text_input(key="draft-name").set_value("Ward round")
    app = press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    assert stored.name == "Ward round" and "stored as version 1" in texts(app)
    assert Schema.from_yaml(stored.schema_yaml).outcome.classes == ("no", "yes")


def test_another_outcome_and_positive_class_can_be_stated(shared_services: Services, owner: str) -> None:
    app = upload(open_app(), "ward.csv", csv())
    app.selectbox(key="draft-positive").set_value("no").run()
    app = press(check(app), "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    assert Schema.from_yaml(stored.schema_yaml).outcome.classes == ("yes", "no")


def test_a_table_beyond_what_the_model_was_trained_on_is_not_said_to_have_no_warnings(
    shared_services: Services, owner: str
) -> None:
    frame = small_frame()
    more = np.random.default_rng(1).normal(size=(len(frame), 90)).round(2)
    app = upload(open_app(), "wide.csv", csv(frame.join(pd.DataFrame(more, columns=[f"assay {n}" for n in range(90)]))))
    app = press(app, "draft-save")
    assert any("model 'general' was trained on" in warning.value for warning in app.warning)
    assert "No warnings" not in texts(app)


def test_what_was_saved_is_open_though_another_was(shared_services: Services, owner: str, ward: StoredCohort) -> None:
    app = upload(open_app(cohort=ward.id), "new one.csv", csv())
    app = press(app, "draft-save")
    (saved,) = (stored for stored in shared_services.store.cohorts.list(owner) if stored.id != ward.id)
    assert app.query_params["cohort"] == saved.id and app.selectbox(key="cohort-chosen").value == saved.id
    app = check(app.selectbox(key="cohort-chosen").set_value(ward.id).run())
    assert app.query_params["cohort"] == ward.id


def test_further_texts_for_not_measured_can_be_stated(shared_services: Services, owner: str) -> None:
    frame = small_frame()
    frame.loc[::4, "lactate"] = -999
    app = upload(open_app(), "coded.csv", csv(frame))
    assert any("lactate' is -999 in 20 rows" in warning.value for warning in app.warning)
    app = check(app.text_input(key="draft-missing").set_value("not done, -999").run())
    assert not any("-999" in warning.value for warning in app.warning)
    app = press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    cohort = shared_services.cohort(owner, stored)
    assert np.nanmin(cohort.x[:, cohort.names.index("lactate")]) > 0


def test_a_text_that_may_mean_not_measured_is_asked_about_and_one_press_takes_it_so(
    shared_services: Services, owner: str
) -> None:
    frame = small_frame().astype({"lactate": object})
    frame["nyha"] = ["I", "II", "k.A.", "III"] * (len(frame) // 4)
    frame.loc[::5, "lactate"] = "k.A."
    app = upload(open_app(), "words.csv", csv(frame))
    assert "'k.A.' is not a number" in texts(app) and "not measured? It stands in lactate, nyha." in texts(app)
    app = press(app, "draft-missing-0")
    assert app.text_input(key="draft-missing").value == "k.A." and "mean not measured?" not in texts(app)
    app = press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    cohort = shared_services.cohort(owner, stored)
    assert cohort.feature("nyha").levels == ("I", "II", "III")
    assert np.isnan(cohort.x[0, cohort.names.index("lactate")])


def test_cells_with_a_unit_are_read_as_numbers_where_a_person_says_so(shared_services: Services, owner: str) -> None:
    frame = small_frame()
    frame["lactate"] = [f"{1 + i % 7} mmol/l" for i in range(len(frame))]
    app = upload(open_app(), "units.csv", csv(frame))
    assert "is a number with a unit" in texts(app)
    app = check(app.selectbox(key="draft-units").set_value("drop").run())
    assert "Numbers with a unit, read as the number alone" in texts(app)
    app = press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    assert Schema.from_yaml(stored.schema_yaml).feature("lactate").unit == "mmol/L"


def edit(app: AppTest, content: bytes, edits: dict[str, dict[str, str]], editing: int = 0) -> AppTest:
    """What the browser sends when rows of columns are changed. editing: how often columns were looked over anew."""
    app.session_state[f"draft-rows-{hashlib.sha256(content).hexdigest()[:12]}-{editing}"] = {"edits": edits}
    return check(app.run())


def test_roles_are_guessed_and_said_in_one_sentence(shared_services: Services, owner: str) -> None:
    frame = small_frame()
    frame["seen on"] = [f"2024-01-{1 + i % 28:02d}" for i in range(len(frame))]
    app = upload(open_app(), "dated.csv", csv(frame[["age", "seen on", "lactate", "died"]]))
    assert "1 known at the start, 1 can be measured, 1 ignored; outcome died" in texts(app)
    press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    schema = Schema.from_yaml(stored.schema_yaml)
    assert schema.baseline == ("age",) and schema.acquirable == ("lactate",) and schema.feature("age").unit == "years"


def test_what_was_read_how_is_shown_before_storing(shared_services: Services, owner: str) -> None:
    frame = small_frame().astype({"lactate": object})
    frame.loc[::5, "lactate"] = "<0.5"
    app = upload(open_app(), "limits.csv", csv(frame))
    assert "detection limit" in texts(app)
    app = check(app.selectbox(key="draft-censored").set_value("limit").run())
    assert "Detection limits, read as the limit itself" in texts(app) and "16 cells such as '<0.5'" in texts(app)
    assert shared_services.store.cohorts.list(owner) == ()


def lines_on_unused(app: AppTest) -> list[str]:
    """Below the heading of the columns that are not used."""
    lines = [text.value.replace(labels.JOINER, "") for text in (*app.expander[1].markdown, *app.expander[1].caption)]
    return [line for line in lines if re.match("record id|seen on|site|sodium|.*not used", line)]


def test_every_column_that_is_not_used_is_listed_with_its_reason(shared_services: Services, owner: str) -> None:
    frame = small_frame()[["age", "lactate", "sodium", "died"]].assign(site="A")
    frame["seen on"] = [f"2024-01-{1 + i % 28:02d}" for i in range(len(frame))]
    frame.insert(0, "record id", range(1000, 1000 + len(frame)))
    content = csv(frame)
    app = edit(upload(open_app(), "dated.csv", content), content, {"3": {"role": "ignored"}})
    assert lines_on_unused(app) == [
        "**Columns that are not used**",
        f"record id: looks like an identifier ({len(frame)} different values in {len(frame)} rows).",
        "sodium: your choice.",
        "site: holds one and the same value.",
        "seen on: a date or a time, which cannot be used as it stands.",
    ]
    app = edit(app, content, {"0": {"role": "baseline"}})
    assert not any("record id" in line for line in lines_on_unused(app)), "it is used, since a person says so"


def test_a_guess_that_is_wrong_is_changed_and_the_change_is_stored(shared_services: Services, owner: str) -> None:
    content = csv(small_frame()[["age", "lactate", "sodium", "died"]])
    app = edit(
        upload(open_app(), "ward.csv", content), content, {"0": {"role": "acquirable"}, "2": {"role": "ignored"}}
    )
    assert "0 known at the start, 2 can be measured, 1 ignored" in texts(app)
    assert "Nothing is known at the start" in texts(app)
    press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    schema = Schema.from_yaml(stored.schema_yaml)
    assert schema.acquirable == ("age", "lactate") and not schema.baseline


def test_what_was_said_of_columns_stays_when_another_outcome_is_chosen(shared_services: Services, owner: str) -> None:
    content = csv(small_frame()[["age", "lactate", "sodium", "died"]])
    app = edit(upload(open_app(), "ward.csv", content), content, {"0": {"role": "acquirable"}})
    app = check(app.selectbox(key="draft-outcome").set_value("sodium").run())
    assert "outcome sodium, median" in texts(app)
    app = press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    assert Schema.from_yaml(stored.schema_yaml).feature("age").role == "acquirable"


def test_an_identifier_that_is_wanted_is_used(shared_services: Services, owner: str) -> None:
    frame = small_frame()
    frame.insert(0, "record id", range(1000, 1000 + len(frame)))
    content = csv(frame)
    app = upload(open_app(), "ward.csv", content)
    assert "1 ignored" in texts(app)
    press(edit(app, content, {"0": {"role": "baseline"}}), "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    assert "record id" in Schema.from_yaml(stored.schema_yaml).baseline


def test_tests_that_are_always_recorded_together_become_a_panel(shared_services: Services, owner: str) -> None:
    frame = small_frame()
    frame.loc[::3, ["sodium", "potassium"]] = None
    app = press(upload(open_app(), "ward.csv", csv(frame)), "draft-panel-0")
    press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    assert ("sodium", "potassium") in Schema.from_yaml(stored.schema_yaml).groups.values()


def test_while_a_file_is_looked_over_nothing_else_is_shown(shared_services: Services, owner: str, ward) -> None:
    app = upload(open_app(cohort=ward.id), "ward.csv", csv())
    assert "New cohort from ward" in texts(app) and "Start a step-through" not in texts(app)
    assert "Start a step-through" in texts(press(app, "draft-discard"))


def test_without_rows_the_grid_has_the_roles(
    shared_services: Services, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(
        import_module("streamlit.components.v2.get_bidi_component_manager"), "get_bidi_component_manager"
    )
    content = csv(small_frame()[["age", "lactate", "sodium", "died"]])
    app = upload(open_app(), "ward.csv", content)
    editor = f"draft-editor-{hashlib.sha256(content).hexdigest()[:12]}-0"
    app.session_state[editor] = {"edited_rows": {2: {"role": "ignored"}}, "added_rows": [], "deleted_rows": []}
    press(check(app.run()), "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    schema = Schema.from_yaml(stored.schema_yaml)
    assert schema.baseline == ("age",) and schema.acquirable == ("lactate",)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "empty"),
        (b"a,b\n1,2\n3,4,5\n" * 10, "Row"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, ""),
        (b"age,died\n" + b"50,1\n" * 20, "one and the same"),
    ],
)
def test_a_file_that_cannot_serve_is_refused_in_words(
    owner: str, shared_services, content: bytes, sentence: str
) -> None:
    app = upload(open_app(), "broken.csv", content)
    assert app.error and sentence in app.error[0].value.replace("\\", "")
    assert "Learning to Measure" in texts(app) or "Discard" in texts(app), "the rest of the page is gone"


def test_a_refused_file_is_told_where_it_was_chosen_and_not_below_what_lies_over_the_page(
    owner: str, shared_services: Services, ward: StoredCohort
) -> None:
    app = upload(open_app(cohort=ward.id), "empty.csv", b"")
    (add,) = [block for block in app.get("popover") if block.get("file_uploader")]
    assert [error.value.replace(labels.JOINER, "") for error in add.get("error")] == [
        "empty.csv: The file is empty. It needs a header row and at least ten rows."
    ]
    assert len(app.error) == 1
    assert not app.run().error, "told once"


def test_a_column_that_cannot_be_used_can_be_ignored_and_the_rest_saved(shared_services: Services, owner: str) -> None:
    frame = small_frame()
    frame["pressure"] = [f"{120 + i % 9}/80" for i in range(len(frame))]
    content = csv(frame[["age", "pressure", "lactate", "died"]])
    app = upload(open_app(), "pairs.csv", content)
    assert "pressure" in app.error[0].value.replace("\\", "")
    app = press(app, "draft-save")
    assert shared_services.store.cohorts.list(owner) == () and "pressure" in app.error[0].value.replace("\\", "")
    app = edit(app, content, {"1": {"role": "ignored"}})
    press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    assert Schema.from_yaml(stored.schema_yaml).used == ("age", "lactate")


def beside_the_schema_file(app: AppTest) -> Expander:
    (part,) = (part for part in app.expander if part.label.startswith("Costs"))
    assert "cohort-draft-schema" in {upload.key for upload in part.file_uploader}
    return part


def test_a_schema_from_yaml_wins_over_guesses(shared_services: Services, owner: str) -> None:
    app = upload(open_app(), "ward.csv", csv(small_frame()[["age", "lactate", "sodium", "died"]]))
    yaml = "outcome: {name: died, kind: binary, classes: ['yes', 'no']}\nfeatures:\n- {name: age, role: ignored}\n"
    app = check(app.file_uploader(key="cohort-draft-schema").upload("schema.yaml", yaml.encode()).run())
    (said,) = beside_the_schema_file(app).success
    assert said.value.replace(labels.JOINER, "") == "The schema was loaded: the outcome 'died' and 1 column."
    press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    schema = Schema.from_yaml(stored.schema_yaml)
    assert schema.used == ("lactate", "sodium") and schema.outcome.classes == ("yes", "no")


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        ("features:\n- {name: lactat, role: acquirable}\n", "There is no column 'lactat'. Did you mean 'lactate'?"),
        ("outcome: {name: dead}", "There is no column 'dead' for the outcome."),
        ("features:\n- {name: died}\n", "'died' is the outcome, so it cannot be a feature as well."),
    ],
)
def test_a_schema_from_yaml_that_does_not_fit_the_file_is_refused_where_it_is_loaded(
    owner: str, yaml: str, words: str
) -> None:
    app = upload(open_app(), "ward.csv", csv(small_frame()[["age", "lactate", "died"]]))
    before = app.session_state[DRAFT]
    app = app.file_uploader(key="cohort-draft-schema").upload("schema.yaml", yaml.encode()).run()
    (said,) = beside_the_schema_file(app).error
    assert words in said.value.replace("\\", "") and app.session_state[DRAFT] == before


def test_the_grid_tells_limits_that_are_enforced_from_reference_ranges(owner: str) -> None:
    app = upload(open_app(), "ward.csv", csv())
    (grid,) = beside_the_schema_file(app).dataframe
    columns = json.loads(grid.proto.columns)
    assert columns["minimum"]["label"] == "minimum allowed" and columns["maximum"]["label"] == "maximum allowed"
    assert columns["reference_low"]["label"] == "reference low"


def test_the_positive_class_of_a_stored_cohort_can_be_changed(shared_services: Services, owner: str, ward) -> None:
    app = open_app(cohort=ward.id)
    app.session_state["cohort-tabs"] = "Schema"
    app = check(check(app.run()).selectbox(key=f"schema-positive-{ward.id}").set_value("no").run())
    press(app, "schema-save")
    versions = {
        stored.version: Schema.from_yaml(stored.schema_yaml) for stored in shared_services.store.cohorts.list(owner)
    }
    assert versions[2].outcome.classes == ("yes", "no") and versions[1].outcome.classes == ("no", "yes")
    assert versions[2].features == versions[1].features


def test_an_outcome_that_is_a_number_has_its_unit_at_the_upload_and_later(
    shared_services: Services, owner: str
) -> None:
    app = upload(open_app(), "ward.csv", csv())
    app = check(app.selectbox(key="draft-outcome").set_value("sodium").run())
    app = check(app.text_input(key="draft-outcome-unit").set_value(" mmol/L ").run())
    app = check(app.selectbox(key="draft-kind").set_value("continuous").run())
    press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    assert Schema.from_yaml(stored.schema_yaml).outcome.unit == "mmol/L"
    app = open_app(cohort=stored.id)
    app.session_state["cohort-tabs"] = "Schema"
    app = check(app.run())
    assert app.text_input(key=f"schema-unit-{stored.id}").value == "mmol/L"
    app.text_input(key=f"schema-unit-{stored.id}").set_value("mEq/L").run()
    press(app, "schema-save")
    units = {
        stored.version: Schema.from_yaml(stored.schema_yaml).outcome.unit
        for stored in shared_services.store.cohorts.list(owner)
    }
    assert units == {1: "mmol/L", 2: "mEq/L"}


def test_the_unit_of_one_outcome_is_not_that_of_the_next(owner: str) -> None:
    app = upload(open_app(), "ward.csv", csv())
    app = check(app.selectbox(key="draft-outcome").set_value("sodium").run())
    app = check(app.text_input(key="draft-outcome-unit").set_value("mmol/L").run())
    app = check(app.selectbox(key="draft-outcome").set_value("age").run())
    assert app.text_input(key="draft-outcome-unit").value == ""
    yaml = "outcome: {name: sodium, kind: continuous, unit: mEq/L}"
    app = check(app.file_uploader(key="cohort-draft-schema").upload("schema.yaml", yaml.encode()).run())
    assert app.text_input(key="draft-outcome-unit").value == "mEq/L"


def test_a_refusal_of_a_stored_table_says_how_its_rows_are_counted(shared_services: Services, owner: str) -> None:
    frame = small_frame().astype({"lactate": object})
    frame.loc[::5, "lactate"] = "<0.5"
    ignored = {"features": [{"name": "lactate", "role": "ignored"}]}
    stored = shared_services.add_cohort(owner, Cohort.from_csv(csv(frame), "died", schema=ignored, name="limits"))
    app = open_app(cohort=stored.id)
    app.session_state["cohort-tabs"] = "Schema"
    app = check(app.run())
    text = "features: [{name: lactate, kind: number, role: acquirable}]\noutcome: died"
    app.file_uploader(key="schema-upload").upload("schema.yaml", text.encode()).run()
    assert "row 0: '<0.5' is a detection limit" in texts(app)
    assert "Rows are counted from 0 in the stored table" in texts(app)
    assert len(shared_services.store.cohorts.list(owner)) == 1


def test_yaml_describes_a_stored_cohort_in_a_new_version(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    app = open_app(cohort=ward.id)
    app.session_state["cohort-tabs"] = "Schema"
    app = check(app.run())
    text = ward.schema_yaml.replace("cost: 12", "cost: 13")
    assert text != ward.schema_yaml
    app.file_uploader(key="schema-upload").upload("schema.yaml", text.encode()).run()
    check(app)
    versions = {
        stored.version: Schema.from_yaml(stored.schema_yaml) for stored in shared_services.store.cohorts.list(owner)
    }
    assert versions[2].feature("lactate").cost == 13 and versions[1].feature("lactate").cost == 12


def test_a_yaml_file_that_is_none_is_refused_and_nothing_changes(shared_services: Services, owner: str, ward) -> None:
    app = open_app(cohort=ward.id)
    app.session_state["cohort-tabs"] = "Schema"
    app = check(app.run())
    app.file_uploader(key="schema-upload").upload("schema.yaml", b"features: [{name: nothing here}]").run()
    assert app.error and len(shared_services.store.cohorts.list(owner)) == 1


def test_deleting_asks_and_then_erases(shared_services: Services, owner: str, ward: StoredCohort) -> None:
    app = open_app(cohort=ward.id)
    app.session_state["cohort-tabs"] = "Manage"
    app = press(check(app.run()), f"cohort-delete-{ward.id}")
    assert shared_services.store.cohorts.list(owner) == () and "deleted" in texts(app)


def test_a_second_press_does_not_delete_the_cohort_that_is_shown_next(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    other = shared_services.add_cohort(owner, replace(small_cohort(), name="other ward"))
    app = open_app(cohort=ward.id)
    app.session_state["cohort-tabs"] = "Manage"
    asked = check(app.run()).button(key=f"cohort-delete-{ward.id}").proto.id
    app = press(app, f"cohort-delete-{ward.id}")
    assert app.button(key=f"cohort-delete-{other.id}").proto.id != asked, "a late press would mean this one"
    assert [cohort.id for cohort in shared_services.store.cohorts.list(owner)] == [other.id]


def test_deleting_tells_that_levels_stay_for_step_throughs(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    shared_services.store.step_throughs.create(owner, ward.id, "model")
    app = open_app(cohort=ward.id)
    app.session_state["cohort-tabs"] = "Manage"
    assert "names of columns, levels and classes stay as long as there are step-throughs" in texts(check(app.run()))
    shared_services.store.cohorts.delete(owner, ward.id)
    assert "dense" in shared_services.store.cohorts.get(owner, ward.id).schema_yaml, "a level of the scan"


def test_an_address_of_a_cohort_that_is_gone_says_that_another_is_shown(owner: str, ward: StoredCohort) -> None:
    app = open_app(cohort=str(uuid.uuid4()))
    assert "The cohort of this address is not here" in texts(app)
    assert app.selectbox(key="cohort-chosen").value == ward.id and app.query_params["cohort"] == ward.id
    assert "The cohort of this address is not here" not in texts(open_app())


def test_what_another_owner_has_is_not_listed_and_not_opened(shared_services: Services, owner: str) -> None:
    theirs = shared_services.add_cohort(f"{owner}-other", small_cohort())
    app = open_app(cohort=theirs.id)
    assert "ward" not in texts(app) and "Learning to Measure" in texts(app)


def test_a_shared_cohort_can_be_used_and_not_deleted(shared_services: Services, owner: str) -> None:
    other = f"{owner}-other"
    theirs = shared_services.add_cohort(other, replace(small_cohort(), name="shared ward"))
    shared_services.store.cohorts.share(other, theirs.id)
    try:
        app = open_app(cohort=theirs.id)
        app.session_state["cohort-tabs"] = "Manage"
        app = check(app.run())
        assert "shared with you" in texts(app)
        with pytest.raises(KeyError):
            app.button(key=f"cohort-delete-{theirs.id}")
    finally:
        shared_services.store.cohorts.share(other, theirs.id, False)


def test_saving_a_shared_cohorts_schema_says_whose_cohort_that_makes(shared_services: Services, owner: str) -> None:
    other, cohorts = f"{owner}-other", shared_services.store.cohorts
    theirs = shared_services.add_cohort(other, replace(small_cohort(), name="shared ward"))
    cohorts.share(other, theirs.id)
    try:
        app = open_app(cohort=theirs.id)
        app.session_state["cohort-tabs"] = "Schema"
        app = check(app.run())
        assert "Saving makes a cohort of your own; the one that is shared with you stays as it is." in texts(app)
        app = press(app, "schema-save")
        assert "Nothing was changed." in texts(app)
        assert [stored.id for stored in cohorts.list(owner)] == [theirs.id]
        app.selectbox(key=f"schema-positive-{theirs.id}").set_value("no").run()
        app = press(app, "schema-save")
        assert "'shared ward', version 1, is stored as a cohort of your own" in texts(app)
        assert {stored.owner for stored in cohorts.list(owner)} == {owner, other}
    finally:
        cohorts.share(other, theirs.id, False)


def test_a_schema_that_is_changed_back_leads_to_the_version_that_had_it(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    app = open_app(cohort=ward.id)
    app.session_state["cohort-tabs"] = "Schema"
    app = check(check(app.run()).selectbox(key=f"schema-positive-{ward.id}").set_value("no").run())
    app = press(app, "schema-save")
    assert "stored as version 2; earlier versions stay" in texts(app)
    newest = next(known for known in shared_services.store.cohorts.list(owner) if known.version == 2)
    app = check(app.selectbox(key=f"schema-positive-{newest.id}").set_value("yes").run())
    app = press(app, "schema-save")
    assert f"This is version 1 of '{ward.name}', which was stored before." in texts(app)
    assert app.query_params["cohort"] == ward.id


def test_a_gzipped_file_and_parquet_are_read_too(shared_services: Services, owner: str) -> None:
    import gzip

    app = upload(open_app(), "ward.csv.gz", gzip.compress(csv()))
    assert app.selectbox(key="draft-outcome").value == "died"
    app = press(app, "draft-discard")
    buffer = io.BytesIO()
    small_frame().to_parquet(buffer)
    app = upload(open_app(), "ward.parquet", buffer.getvalue())
    assert app.selectbox(key="draft-outcome").value == "died"


def test_a_workbook_shows_its_largest_sheet_and_another_can_be_chosen(shared_services: Services, owner: str) -> None:
    rows = [[*small_frame().columns], *small_frame().astype(object).where(small_frame().notna(), None).values.tolist()]
    young = [rows[0], *rows[1:31]]
    data = workbook(Legend=[["code", "meaning", "more"], ["m"], [], ["Source: ward"]], Young=young, All=rows)
    app = upload(open_app(), "ward.xlsx", data)
    assert app.selectbox(key="draft-sheet").options == ["Young", "All"]
    assert app.selectbox(key="draft-sheet").value == "All"
    assert "The sheet Legend is not offered: Row 4" in texts(app)
    app = check(app.selectbox(key="draft-outcome").set_value("sex").run())
    app = check(app.selectbox(key="draft-sheet").set_value("Young").run())
    assert "30 rows" in texts(app) and app.selectbox(key="draft-outcome").value == "died"
    app = check(app.selectbox(key="draft-sheet").set_value("All").run())
    assert f"{len(rows) - 1:,} rows" in texts(app)
    press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    assert stored.name == "ward"
    assert len(shared_services.cohort(owner, stored)) == len(rows) - 1


def test_a_workbook_with_one_sheet_asks_nothing(shared_services: Services, owner: str) -> None:
    buffer = io.BytesIO()
    small_frame().to_excel(buffer, index=False)
    app = upload(open_app(), "ward.xlsx", buffer.getvalue())
    assert app.selectbox(key="draft-outcome").value == "died"
    assert not [box for box in app.selectbox if box.key == "draft-sheet"]
    assert "Read from the sheet 'Sheet1' of an Excel workbook" in texts(app)


def test_a_file_with_a_row_for_each_measurement_becomes_one_of_patients(shared_services: Services, owner: str) -> None:
    app = upload(open_app(), "laboratory.csv", long_frame().to_csv(index=False).encode())
    assert (
        "Each row of the file seems to be one measurement: 'test' names the test"
        in app.selectbox(key="draft-rows").label
    )
    assert app.selectbox(key="draft-rows").value == "first" and "24 rows, 6 columns" in texts(app)
    app = check(app.selectbox(key="draft-rows").set_value("as in the file").run())
    assert "96 rows, 7 columns" in texts(app)
    app = check(app.selectbox(key="draft-rows").set_value("last").run())
    assert "24 rows, 6 columns" in texts(app) and "last in the file was taken: 48 more were not" in texts(app)
    assert app.selectbox(key="draft-outcome").value == "died"
    press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    cohort = shared_services.cohort(owner, stored)
    assert len(cohort) == 24 and cohort.feature("crp (mg/L)").unit == "mg/L"
    assert cohort.x[1, cohort.names.index("crp (mg/L)")] == np.float32(result(1, "crp", 1))


def test_a_workbook_without_a_table_is_refused_in_words(shared_services: Services, owner: str) -> None:
    app = upload(open_app(), "title.xlsx", workbook(Data=[["A title"], ["age", "crp", "died"], [50, 1.5, "no"]]))
    assert "title.xlsx: Row 1 of the sheet 'Data' names 1 of 3 columns" in texts(app)


def rows_of(*columns: list[str]) -> bytes:
    return "\n".join(["age;platelets;died", *(";".join(row) for row in zip(*columns, strict=True))]).encode()


AGES = [str(40 + 7 * i % 31) for i in range(40)]


def test_the_decimal_sign_is_asked_for_and_can_be_stated(shared_services: Services, owner: str) -> None:
    app = upload(open_app(), "ward.csv", rows_of(AGES, ["950", "1.100"] * 20, ["no", "no", "yes", "yes"] * 10))
    assert "'1.100' could be 1100 or 1.100" in texts(app) and "decimal sign" in texts(app)
    app = check(app.selectbox(key="draft-decimal").set_value("comma: 1,5").run())
    assert "1100 or 1.100" not in texts(app)
    press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    assert shared_services.cohort(owner, stored).x[:2, 1].tolist() == [950, 1100]


def test_a_doubtful_outcome_is_stored_only_when_its_kind_is_stated(shared_services: Services, owner: str) -> None:
    outcome = ["dead", "alive"] * 19 + ["ded", "alive"]
    app = upload(open_app(), "ward.csv", rows_of(AGES, ["950", "110"] * 20, outcome))
    assert "'ded' in row 40" in texts(app) and "nearly the same" in texts(app)
    app = press(app, "draft-save")
    assert shared_services.store.cohorts.list(owner) == ()
    app = check(app.selectbox(key="draft-kind").set_value("multiclass").run())
    press(app, "draft-save")
    (stored,) = shared_services.store.cohorts.list(owner)
    assert Schema.from_yaml(stored.schema_yaml).outcome.classes == ("alive", "dead", "ded")


def test_a_cohort_of_an_earlier_version_opens_and_offers_today_s_reading(shared_services: Services, owner: str) -> None:
    stored = shared_services.store.cohorts.add(owner, "ward", FRAME, SCHEMA.to_yaml(), HASH)
    assert shared_services.cohort(owner, stored).content_hash == HASH
    app = open_app()
    assert "upload its file again" in texts(app) and "'culture'" in texts(app)


@pytest.mark.parametrize(
    ("classes", "said"), [(["0", "1"], "of 100 patients"), (["home", "ward"], "of 100 patients: ward")]
)
def test_how_often_the_outcome_is_names_only_a_class_that_says_more(
    shared_services: Services, owner: str, classes: list[str], said: str
) -> None:
    frame = small_frame()
    frame["died"] = frame["died"].map({"no": classes[0], "yes": classes[1]})
    stored = shared_services.add_cohort(owner, Cohort.from_frame(frame, outcome="died", positive=classes[1]))
    prevalence = open_app("cohort", cohort=stored.id).metric[2]
    assert re.fullmatch(rf"\d+ {said}", labels.plain(prevalence.delta.replace(labels.JOINER, "")))
