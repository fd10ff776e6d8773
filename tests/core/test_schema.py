"""A schema is strict, and the same after a round trip through YAML."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from l2m_core.errors import SchemaError
from l2m_core.schema import Feature, Outcome, Overrides, Schema
from l2m_core.tables.strict_yaml import YamlProblem, read_yaml

AGE = Feature("age", role="baseline", unit="years", minimum=0, maximum=120)
SEX = Feature("sex", "binary", "baseline", levels=("no", "yes"))
LACTATE = Feature("lactate", unit="mmol/L", cost=12, turnaround=30, group="blood gas", reference_high=2.0)
PH = Feature("ph", group="blood gas")
ID = Feature("id", role="ignored")
SCHEMA = Schema((AGE, SEX, LACTATE, PH, ID), Outcome("died", classes=("0", "1")))


def test_a_schema_knows_its_roles_and_panels():
    assert SCHEMA.names == ("age", "sex", "lactate", "ph", "id")
    assert SCHEMA.used == ("age", "sex", "lactate", "ph")
    assert (SCHEMA.baseline, SCHEMA.acquirable) == (("age", "sex"), ("lactate", "ph"))
    assert SCHEMA.groups == {"blood gas": ("lactate", "ph")}


def test_yaml_leaves_out_defaults_and_keeps_texts_that_yaml_would_turn_into_something_else():
    written = SCHEMA.to_yaml()
    assert "turnaround: 30.0" in written and "description" not in written
    assert Schema.from_yaml(written) == SCHEMA
    assert Schema.from_yaml(
        "outcome: {name: 2020-01-01}\nfeatures:\n- {name: no, levels: [no, 1.0, null_]}\n"
    ) == Schema((Feature("no", "category", levels=("no", "1.0", "null_")),), Outcome("2020-01-01"))


names = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=30).map(str.strip).filter(bool)
plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
levels = st.lists(plain.filter(str.strip), unique=True, min_size=2, max_size=8).map(tuple)
amounts = st.floats(0, 1e12)
bounds = st.none() | st.floats(-1e30, 1e30)


@st.composite
def features(draw, name):
    settings = {
        "role": draw(st.sampled_from(["baseline", "acquirable", "ignored"])),
        "unit": draw(plain),
        "cost": draw(amounts),
        "turnaround": draw(st.none() | amounts),
        "description": draw(plain),
    }
    kind = draw(st.sampled_from(["number", "category", "binary"]))
    if kind == "number":
        for low, high in (("minimum", "maximum"), ("reference_low", "reference_high")):
            pair = (draw(bounds), draw(bounds))
            settings[low], settings[high] = pair if None in pair else sorted(pair)
    elif kind == "category":
        settings["levels"] = draw(levels)
    else:
        settings["levels"] = draw(levels)[:2]
    return Feature(name, kind, **settings)


@st.composite
def schemas(draw):
    found = draw(st.lists(names, unique=True, min_size=2, max_size=6))
    kind = draw(st.sampled_from(["binary", "multiclass", "continuous"]))
    classes = {"binary": lambda: draw(levels)[:2], "multiclass": lambda: draw(levels), "continuous": tuple}[kind]()
    return Schema(tuple(draw(features(name)) for name in found[1:]), Outcome(found[0], kind, classes, draw(plain)))


@given(schemas())
def test_any_schema_survives_yaml_unchanged(schema):
    assert Schema.from_yaml(schema.to_yaml()) == schema


@given(st.text(max_size=200))
def test_any_text_is_a_schema_or_a_schema_error(text):
    try:
        Schema.from_yaml(text)
    except SchemaError as refusal:
        assert str(refusal)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": ""}, ["name"]),
        ({"name": " a"}, ["blanks"]),
        ({"name": "a\nb"}, ["line breaks"]),
        ({"name": "a" * 201}, ["201"]),
        ({"kind": "integer"}, ["'a'", "kind", "'integer'", "number, category, binary"]),
        ({"role": "acquired"}, ["role", "'acquired'"]),
        ({"cost": -1}, ["cost", "-1"]),
        ({"cost": float("nan")}, ["cost", "finite"]),
        ({"cost": True}, ["cost", "number"]),
        ({"turnaround": -5}, ["turnaround", "minutes"]),
        ({"minimum": 3, "maximum": 2}, ["minimum 3", "maximum 2"]),
        ({"kind": "category", "minimum": 3}, ["minimum", "kind: number"]),
        ({"levels": ("x", "y")}, ["levels", "kind: category"]),
        ({"kind": "binary", "levels": ("x", "y", "z")}, ["binary", "two"]),
        ({"kind": "category", "levels": ("x", "x")}, ["twice"]),
        ({"kind": "category", "levels": "xy"}, ["list"]),
        ({"kind": "category", "levels": tuple(map(str, range(51)))}, ["51", "50"]),
        ({"unit": 3}, ["unit", "text"]),
    ],
)
def test_a_feature_refuses_what_contradicts_itself(settings, words):
    with pytest.raises(SchemaError) as refusal:
        Feature(**{"name": "a", **settings})
    assert [word for word in words if word not in str(refusal.value)] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("features: []\n", ["name the outcome"]),
        ("outcome: {name: y}\nfeature: []\n", ["unknown key 'feature'", "'features'"]),
        ("outcome: {name: y, clases: [a, b]}\n", ["unknown key 'clases'", "'classes'"]),
        ("outcome: {name: y}\nfeatures:\n- {name: a, rule: baseline}\n", ["feature 1", "'rule'", "'role'"]),
        ("outcome: {name: y}\nfeatures:\n- {kind: number}\n", ["Feature 1", "no name"]),
        ("outcome: {name: y}\nfeatures:\n- {name: a}\n- {name: a}\n", ["'a'", "twice"]),
        ("outcome: {name: y}\nfeatures:\n- {name: y}\n", ["'y'", "both"]),
        ("outcome: {name: y}\nfeatures:\n- {name: a, cost: dear}\n", ["cost", "'dear'"]),
        ("outcome: {name: y}\noutcome: {name: z}\n", ["Line 2", "'outcome'", "twice"]),
        ("outcome: {name: y}\nfeatures: {a: 1}\n", ["list"]),
        ("outcome: [y\n", ["YAML", "line"]),
        ("outcome: &o {name: y}\nfeatures: [*o]\n", ["alias"]),
        ("outcome: !!python/object/apply:os.system [id]\n", ["YAML"]),
        ("[" * 5000, ["nested"]),
        ("outcome: y\nfeatures:\n- {name: a, group: g, role: baseline}\n- {name: b, group: g}\n", ["'g'", "roles"]),
        ("", ["key: value"]),
    ],
)
def test_a_schema_file_is_refused_by_the_name_of_what_is_wrong(text, words):
    with pytest.raises(SchemaError) as refusal:
        Schema.from_yaml(text)
    assert [word for word in words if word not in str(refusal.value)] == []


def test_what_a_schema_file_leaves_out_is_left_to_inference():
    overrides = Overrides.from_yaml("features:\n- {name: lactate, cost: 12}\n- {name: sex, levels: [F, M]}\n")
    assert overrides.outcome == {}
    assert overrides.features["lactate"] == {"name": "lactate", "cost": 12.0}
    assert overrides.features["sex"]["kind"] == "binary"


def test_schemas_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        AGE.cost = 3.0


def test_an_unknown_feature_is_answered_with_a_close_match():
    with pytest.raises(SchemaError, match="Did you mean 'lactate'"):
        SCHEMA.feature("Lactat")


def test_yaml_of_unbounded_size_is_not_parsed():
    with pytest.raises(YamlProblem, match="characters"):
        read_yaml("a" * 3_000_000)


def test_a_feature_may_have_a_loinc_code():
    coded = dataclasses.replace(LACTATE, code="2524-7")
    schema = Schema((AGE, coded), Outcome("died", classes=("0", "1")))
    assert "code: 2524-7" in schema.to_yaml() and Schema.from_yaml(schema.to_yaml()) == schema
    assert "code" not in SCHEMA.to_yaml()


@pytest.mark.parametrize("code", ["2524-8", "2524", "lactate", "25247", " 2524-7", "12345678-9", "²524-7"])
def test_what_is_no_loinc_code_is_refused(code):
    with pytest.raises(SchemaError, match="no LOINC code"):
        Feature("lactate", code=code)
