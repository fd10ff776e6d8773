"""Names from a table are shown as they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ui import labels

HOSTILE = [
    "![x](http://example.invalid/pixel.png)",
    "<img src=http://example.invalid/a onerror=alert(1)>",
    "$\\frac{a}{b}$ costs $5",
    ":red[alarm] :tada: :material/home: :red-badge[x]",
    "[click](javascript:alert(1)) www.example.invalid a@example.invalid",
    "*b* _i_ ~s~ `c` # h > q - l 1. l a -> b <= c -- d",
    "&lt;b&gt; &amp; &#x41;",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_markdown_reacts_to_is_left_bare(text: str) -> None:
    shown = labels.markdown(text)
    for start in ("](", "![", "<", "$", "*", "`", "[", "&"):
        position = shown.find(start)
        while position >= 0:
            assert position > 0 and shown[position - 1] == "\\", f"{start!r} is bare in {shown!r}"
            position = shown.find(start, position + 1)
    assert ":tada:" not in shown and ":red" not in shown.replace(labels.JOINER, "!") and "www." not in shown


@pytest.mark.parametrize(
    "text",
    [
        "HbA1c (%)",
        "pH_arterial",
        "C-reactive protein (mg/L)",
        "Na+/K+ ratio",
        "12-lead ECG",
        "temp. (°C)",
        "1.5 mg; 'fasting', second?",
        "5 % = much",
    ],
)
def test_a_usual_name_has_no_backslashes_for_screen_readers_to_read_aloud(text: str) -> None:
    assert labels.markdown(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("_x_ a__b _", "\\_x\\_ a\\_\\_b \\_"),
        ("1. first", "1\\. first"),
        ("12)", "12\\)"),
        ("- item", "\\- item"),
        ("+ item", "\\+ item"),
        ("=", "\\="),
    ],
)
def test_what_means_something_only_in_its_place_is_escaped_there(text: str, shown: str) -> None:
    assert labels.markdown(text) == shown


@given(st.text(max_size=60))
def test_the_text_itself_is_unchanged(text: str) -> None:
    shown = labels.markdown(text).replace(labels.JOINER, "")
    unescaped = []
    characters = iter(shown)
    for character in characters:
        unescaped.append(next(characters) if character == "\\" else character)
    assert "".join(unescaped) == labels.plain(text).replace(labels.JOINER, "")


def test_marks_that_turn_the_direction_of_text_are_made_visible() -> None:
    assert labels.plain("glucose\u202egnp.exe") == "glucose\ufffdgnp.exe"
    assert labels.plain("two\nlines") == "two lines"


HEBREW, ARABIC = (
    "\u05d2\u05dc\u05d5\u05e7\u05d5\u05d6 \u05d1\u05d3\u05dd",
    "\u0627\u0644\u0639\u0645\u0631",
)  # glucose in blood; age


@pytest.mark.parametrize("name", [HEBREW, ARABIC])
def test_a_name_from_right_to_left_stands_apart_from_the_numbers_beside_it(name: str) -> None:
    apart = f"\u2068{name}\u2069"
    assert labels.plain(name) == labels.markdown(name) == labels.short(name) == apart
    sentence = f"Measure {name}: it could move 45% to 30–60%."
    assert labels.plain(sentence) == f"Measure {apart}: it could move 45% to 30–60%."
    assert labels.name_with_unit(name, "mg/dl") == f"{apart} (mg/dl)"
    assert labels.plain(f"{HEBREW} (5 points), {ARABIC} (3 points)").count("\u2068") == 2


def test_what_stands_apart_already_stays_so_and_can_be_taken_back() -> None:
    once = labels.plain(f"Measure {HEBREW}: 45%")
    assert labels.plain(once) == once and labels.short(once, 60) == once
    assert labels.bare(once) == labels.without_isolates(once) == f"Measure {HEBREW}: 45%"
    cut = labels.short(HEBREW * 5, 20)
    assert cut.count("\u2068") == cut.count("\u2069") > 0 and len(labels.bare(cut)) == 20


def test_names_from_left_to_right_have_no_marks_and_foreign_marks_stay_visible() -> None:
    assert labels.plain("Größe 体重 (kg)") == "Größe 体重 (kg)"
    assert labels.plain("\u2068name\u2069") == "\ufffdname\ufffd"


def test_a_chart_shows_tags_as_text() -> None:
    assert labels.chart("<a href='x'>y</a>") == "&lt;a href='x'&gt;y&lt;/a&gt;"
    assert "$x$" not in labels.chart("$x$")


@pytest.mark.parametrize(
    ("name", "unit", "shown"),
    [
        ("lactate", "mmol/L", "lactate (mmol/L)"),
        ("lactate", "", "lactate"),
        ("CRP [mg/l]", "mg/L", "CRP [mg/l]"),
        ("creatinine (umol/L)", "µmol/L", "creatinine (umol/L)"),
        ("leukocytes (10^9/L)", "10⁹/L", "leukocytes (10^9/L)"),
        ("operation (hours)", "h", "operation (hours)"),
        ("glucose (mg/dL)", "mmol/L", "glucose (mg/dL) (mmol/L)"),
        ("age (years)", "years", "age (years)"),
        ("age (years)", "months", "age (years) (months)"),
        ("pH (venous)", "", "pH (venous)"),
    ],
)
def test_a_name_has_its_unit_once(name: str, unit: str, shown: str) -> None:
    assert labels.name_with_unit(name, unit) == shown


def test_a_long_name_keeps_both_ends() -> None:
    shown = labels.short("concentration of the first thing in serum", 20)
    assert len(shown) == 20 and shown.startswith("concentr") and shown.endswith("serum")
    assert labels.short("short", 20) == "short"


def test_long_names_that_differ_in_the_middle_stay_apart() -> None:
    names = [f"Laborwert Nr. {number:02d} – Überprüfung" for number in range(30)]
    shown = labels.short_apart(["Alter", *names], 22)
    assert shown[0] == "Alter" and shown[8:10] == ["Laborwe…07 – Überprüf…", "Laborwe…08 – Überprüf…"]
    assert labels.short_apart(names[:1], 22) == [labels.short(names[0], 22)]  # alone it is cut as it always is


@given(
    st.sets(st.integers(0, 10**6), min_size=2),
    st.text("ab .", max_size=40),
    st.text("cd .", max_size=40),
    st.integers(15, 44),
)
def test_no_two_names_are_cut_to_the_same_words(numbers: set[int], before: str, after: str, longest: int) -> None:
    shown = labels.short_apart([f"a{before}{number}{after}d" for number in numbers], longest)
    assert len(set(shown)) == len(numbers) and max(map(len, shown)) <= longest


@pytest.mark.parametrize(
    ("probability", "percent", "frequency"),
    [
        (0.0, "0%", "0 of 100"),
        (0.002, "<1%", "fewer than 1 of 100"),
        (0.31, "31%", "31 of 100"),
        (0.999, ">99%", "more than 99 of 100"),
        (1.0, "100%", "100 of 100"),
    ],
)
def test_a_probability_is_never_rounded_to_certainty(probability: float, percent: str, frequency: str) -> None:
    assert labels.percent(probability) == percent
    assert labels.of_100(probability) == frequency


def test_links_of_a_model_card_that_lead_nowhere_in_the_app_keep_their_texts() -> None:
    card = (
        "Loss ([measured](../../docs/results/care.md)), [curve](c.jsonl 'the curve'), [paper](https://example.org/a)."
    )
    assert labels.card(card) == "Loss (measured), curve, [paper](https://example.org/a)."
    hostile = "![p](https://example.invalid/p.png) [x](javascript:alert(1)) array[0] (aside)"
    assert labels.card(hostile) == "p x array[0] (aside)" and labels.card("") == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (4.5e-05, "<0.0001"),
        (0.0001, "0.0001"),
        (0.123, "0.12"),
        (9.96, "10"),
        (120.4, "120"),
        (45000.0, "45,000"),
    ],
)
def test_a_ratio_is_never_a_power_of_ten(value: float, shown: str) -> None:
    assert labels.ratio(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0.000"), (1e-7, "<0.001"), (0.0003, "<0.001"), (0.0005, "0.001"), (0.1234, "0.123"), (-0.0003, "0.000")],
)
def test_a_small_gain_is_not_called_none(value: float, shown: str) -> None:
    assert labels.gain(value) == shown
