"""A FHIR R4 Bundle: Patient resources, and Observations whose LOINC codes and UCUM units the cohort's schema knows.

A result is used where its code is that of exactly one feature and its unit is the feature's. Of several results the latest
counts. All else is listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from l2m_core.patients.records import BroughtPatients, PatientRecord, RecordMaker, other_unit, shown, why_not_read
from l2m_core.patients.units import canonical_unit, same_unit
from l2m_core.schema import Feature
from l2m_core.tables.entered_values import folded_text

LOINC = "http://loinc.org"
USABLE = ("final", "amended", "corrected", "preliminary")
COMPARATORS = {"<": "below", "<=": "below", ">": "above", ">=": "above"}
AGE = ("30525-0", "29553-5")  # age, and age calculated: a birth date tells them
SEX = ("46098-0", "72143-1")  # sex as administrations record it: Patient.gender
LETTERS = (("m", "f"), ("m", "w"), ("h", "f"), ("h", "m"))
"""First letters of male and female, by language. One alone does not tell: M is a man in English, and mujer in Spanish."""
Interval = tuple[datetime, datetime]


@dataclass(frozen=True)
class Result:
    """One Observation, or one component of one."""

    code: str
    name: str
    """Code and display, as messages call it."""
    element: Mapping[str, Any]
    """What holds value[x]."""
    when: Interval | None
    status: str


@dataclass
class Person:
    """The resources of one patient."""

    resource: Mapping[str, Any] = field(default_factory=dict)
    observations: list[Mapping[str, Any]] = field(default_factory=list)


def read_bundle(bundle: Mapping[str, Any], cohort: Cohort, most: int) -> BroughtPatients:
    kind = bundle.get("resourceType")
    if kind != "Bundle":
        raise InputError(
            f"This is a FHIR {shown(str(kind))}. Give a Bundle that holds the Patient and the Observations."
        )
    if not any(feature.code for feature in cohort.features):
        raise InputError(
            "No feature of this cohort has a LOINC code, so nothing of a FHIR Bundle can be recognised. Give the features "
            "their codes in the cohort's schema."
        )
    people, notes = _people(bundle)
    if not people:
        raise InputError("The Bundle holds neither a Patient nor an Observation.")
    if len(people) > most:
        raise InputError(f"The Bundle holds {len(people):,} patients; at most {most:,} are read at a time.")
    single = len(people) == 1
    records = [
        _record(person, cohort, "patient" if single else f"patient {number}") for number, person in enumerate(people, 1)
    ]
    return BroughtPatients("FHIR", tuple(records), tuple(notes))


# Who


def _people(bundle: Mapping[str, Any]) -> tuple[list[Person], list[str]]:
    """The patients in the order in which they stand there, and notes on what belongs to none of them."""
    entries = [_mapping(entry) for entry in _list(bundle.get("entry"))]
    people: dict[str, Person] = {}
    by_reference: dict[str, Person] = {}
    placeless: dict[str, Person] = {}  # of whom no full address tells on which server they are
    for number, entry in enumerate(entries):
        resource = _mapping(entry.get("resource"))
        if resource.get("resourceType") != "Patient":
            continue
        person = people.setdefault(_text(resource.get("id")) or f"entry {number}", Person(resource))
        names = {name: person for name in _names(entry, resource)}
        by_reference |= names
        placeless |= {} if entry.get("fullUrl") else names
    subjects = {_subject(_mapping(entry.get("resource"))) for entry in entries}
    for name, person in placeless.items():
        # Of two addresses with this ending, on two servers, one is somebody else's.
        far = [subject for subject in subjects if subject.endswith(f"/{name}")]
        by_reference |= {far[0]: person} if len(far) == 1 and far[0] not in by_reference else {}
    homeless: list[Mapping[str, Any]] = []
    others: dict[str, int] = {}
    for entry in entries:
        resource = _mapping(entry.get("resource"))
        kind = _text(resource.get("resourceType")) or "entries without a resource"
        if kind == "Observation":
            subject = _subject(resource)
            if subject and subject not in by_reference:
                by_reference[subject] = people.setdefault(f"subject {subject}", Person())
            observations = by_reference[subject].observations if subject else homeless
            observations.append(resource)
        elif kind != "Patient":
            others[kind] = others.get(kind, 0) + 1
    notes = [f"Not read: {count} × {shown(kind)}." for kind, count in others.items()]
    if any(_mapping(link).get("relation") == "next" for link in _list(bundle.get("link"))):
        notes.append(
            "The Bundle goes on on a next page, which was not sent: results that stand there are not known here."
        )
    if homeless and not people:
        people["the only one"] = Person()
    if homeless and len(people) == 1:
        next(iter(people.values())).observations.extend(homeless)
    elif homeless:
        notes.append(f"Not read: {len(homeless)} × Observation that says of no patient whose it is.")
    return list(people.values()), notes


def _subject(resource: Mapping[str, Any]) -> str:
    """Whose a resource is, empty where it does not say."""
    return unversioned(_text(_mapping(resource.get("subject")).get("reference")))


def unversioned(reference: str) -> str:
    """A reference to whichever version there is of what it names."""
    return reference.partition("/_history/")[0]


def _names(entry: Mapping[str, Any], resource: Mapping[str, Any]) -> Iterator[str]:
    """What an Observation's subject may call this patient."""
    identifier, full = _text(resource.get("id")), _text(entry.get("fullUrl"))
    if identifier:
        yield f"Patient/{identifier}"
    if full:
        yield full


# What


def _record(person: Person, cohort: Cohort, label: str) -> PatientRecord:
    maker = RecordMaker(cohort, label)
    found: dict[str, list[Result]] = {}
    for observation in person.observations:
        for result in _results(observation):
            name = _feature_of(result, maker)
            if name is not None:
                found.setdefault(name, []).append(result)
    for name, results in found.items():
        latest = _latest(results, name, maker)
        if latest is not None:
            _take(latest, cohort.feature(name), maker)
    _take_demographics(person, cohort, found, maker)
    return maker.done()


def _results(observation: Mapping[str, Any]) -> Iterator[Result]:
    """The Observation itself where it has a value or no components, then each of its components."""
    when, status = _when(observation), _text(observation.get("status"))
    components = [_mapping(part) for part in _list(observation.get("component"))]
    has_value = any(key.startswith("value") for key in observation)
    for element in (*([observation] if has_value or not components else []), *components):
        code, name = _coding(element.get("code"))
        yield Result(code, name, element, when, status)


def _coding(concept: Any) -> tuple[str, str]:
    """The LOINC code of a CodeableConcept, empty where it has none, and how to call it."""
    plain = _mapping(concept)
    codings = [_mapping(coding) for coding in _list(plain.get("coding"))]
    of_loinc = [coding for coding in codings if _text(coding.get("system")).rstrip("/") == LOINC]
    chosen = (of_loinc or codings or [{}])[0]
    code = _text(chosen.get("code"))
    words = _text(plain.get("text")) or _text(chosen.get("display"))
    return code if of_loinc else "", " ".join(part for part in (code, words) if part) or "an Observation without a code"


def _feature_of(result: Result, maker: RecordMaker) -> str | None:
    """The name of the used feature that has this result's code."""
    if not result.code:
        maker.leave(result.name, "It has no LOINC code.", "unknown")
        return None
    schema = maker.cohort.schema
    names = [feature.name for feature in schema.features if feature.code == result.code]
    used = [name for name in names if name in maker.cohort.names]
    if len(used) > 1:
        maker.leave(result.name, f"Several features have this code: {', '.join(used)}.", "doubt")
    elif not names:
        maker.leave(result.name, "No feature of this cohort has this code.", "unknown")
    elif not used:
        maker.leave(result.name, *why_not_read(maker.cohort, names[0]))
    elif result.status not in USABLE:
        status = shown(result.status) or "not stated"
        maker.leave(result.name, f"The Observation's status is {status}, so its value does not count.", "value")
    else:
        return used[0]
    return None


def _latest(results: list[Result], name: str, maker: RecordMaker) -> Result | None:
    """The result that is later than all others, or as good as any where they say the same."""
    if len(results) == 1:
        return results[0]
    timed = sorted((result for result in results if result.when), key=lambda result: result.when or ())
    if len(timed) == len(results) and all(other.when[1] < timed[-1].when[0] for other in timed[:-1]):  # type: ignore[index]
        day = f"{timed[-1].when[0]:%Y-%m-%d}"  # type: ignore[index]
        maker.notes.append(f"{shown(timed[-1].name)}: of {len(results)} results the latest counts, of {day}.")
        return timed[-1]
    if all(_value(result.element) == _value(results[0].element) for result in results):
        return results[0]
    maker.leave(
        results[0].name,
        f"{len(results)} results for '{name}' differ, and their times do not say which is latest.",
        "doubt",
    )
    return None


def _take(result: Result, feature: Feature, maker: RecordMaker) -> None:
    kind, value = _value(result.element)
    if result.status == "preliminary":
        maker.notes.append(f"{shown(result.name)}: the result is preliminary.")
    if kind == "Quantity":
        _take_quantity(result, feature, value, maker)
    elif kind == "CodeableConcept":
        _take_concept(result, feature, value, maker)
    elif kind in ("String", "Boolean", "Integer"):
        if feature.kind == "number" and feature.unit:
            maker.leave(result.name, f"It has no unit, and '{feature.name}' is in {feature.unit}.", "unit")
        else:
            maker.take(feature.name, value)
    elif kind:
        maker.leave(result.name, f"A value{shown(kind)} is not read.", "value")
    else:
        maker.leave(result.name, "It has no value.", "value")


def _value(element: Mapping[str, Any]) -> tuple[str, Any]:
    """The type of value[x], such as Quantity, and the value; empty where there is none."""
    found = [(key.removeprefix("value"), value) for key, value in element.items() if key.startswith("value")]
    return found[0] if found else ("", None)


def _take_quantity(result: Result, feature: Feature, quantity: Any, maker: RecordMaker) -> None:
    plain = _mapping(quantity)
    number, comparator = plain.get("value"), _text(plain.get("comparator"))
    written = _text(plain.get("code")) or _text(plain.get("unit"))
    if feature.kind != "number":
        maker.leave(
            result.name, f"It is an amount, but '{feature.name}' is one of {', '.join(feature.levels)}.", "value"
        )
    elif isinstance(number, bool) or not isinstance(number, int | float):
        maker.leave(result.name, "It has no value.", "value")
    elif not same_unit(written, feature.unit):
        maker.leave(result.name, other_unit(written, feature), "unit")
    elif comparator and comparator not in COMPARATORS:
        maker.leave(result.name, f"The comparator '{shown(comparator)}' is not known.", "value")
    else:
        maker.take(feature.name, number, COMPARATORS.get(comparator))


def _take_concept(result: Result, feature: Feature, concept: Any, maker: RecordMaker) -> None:
    """By its text, display or code, whichever is one of the feature's levels."""
    plain = _mapping(concept)
    codings = [_mapping(coding) for coding in _list(plain.get("coding"))]
    said = [
        _text(plain.get("text")),
        *(_text(c.get("display")) for c in codings),
        *(_text(c.get("code")) for c in codings),
    ]
    level = next((level for text in said if (level := _level(feature, text)) is not None), None)
    if level is not None:
        maker.take(feature.name, level)
    elif feature.kind == "number":
        maker.leave(result.name, f"It is a word, but '{feature.name}' is a number.", "value")
    else:
        words = next((text for text in said if text), "nothing")
        maker.leave(result.name, f"It says {shown(words)!r}, which is none of: {', '.join(feature.levels)}.", "value")


def _level(feature: Feature, text: str) -> str | None:
    found = [level for level in feature.levels if folded_text(level) == folded_text(text)]
    return found[0] if text and len(found) == 1 else None


# Age and sex


def _take_demographics(person: Person, cohort: Cohort, found: Mapping[str, list[Result]], maker: RecordMaker) -> None:
    """By the Patient resource, where no Observation tells them."""
    features = {feature.code: feature for feature in cohort.features if feature.code and feature.name not in found}
    gender, born = _text(person.resource.get("gender")), _text(person.resource.get("birthDate"))
    for code in SEX:
        if gender and code in features:
            _take_sex(gender, features[code], maker)
    for code in AGE:
        if born and code in features:
            _take_age(born, features[code], person, maker)


def _take_sex(gender: str, feature: Feature, maker: RecordMaker) -> None:
    level = _level(feature, gender)
    if level is None and gender in ("male", "female"):
        level = _letter(gender, feature)
    if level is None:
        maker.leave("Patient.gender", f"{shown(gender)!r} is none of: {', '.join(feature.levels)}.", "value")
    else:
        maker.take(feature.name, level)


def _letter(gender: str, feature: Feature) -> str | None:
    """The level that is the first letter of this gender, where the cohort has those of both."""
    pairs = [[_level(feature, letter) for letter in pair] for pair in LETTERS]
    whole = [pair for pair in pairs if None not in pair]
    return whole[0][gender == "female"] if len(whole) == 1 else None


def _take_age(born: str, feature: Feature, person: Person, maker: RecordMaker) -> None:
    """In whole years, on the day of the newest Observation that counts."""
    if feature.kind != "number" or canonical_unit(feature.unit) not in ("a", ""):
        maker.leave("Patient.birthDate", f"'{feature.name}' is not an age in years.", "unit")
        return
    try:
        birth = date.fromisoformat(born)
    except ValueError:
        maker.leave("Patient.birthDate", "It is no whole date, so the age is not known.", "value")
        return
    counting = [one for one in person.observations if _text(one.get("status")) in USABLE]
    times = [when for observation in counting if (when := _when(observation))]
    day = max(when[1] for when in times).date() if times else datetime.now(UTC).date()
    if birth > day + timedelta(days=1):  # a day more, as a newborn's may be one further than UTC's
        newest = f"the newest result, of {day}" if times else f"today, {day}"
        maker.leave("Patient.birthDate", f"{born} is after {newest}, so the age is not known.", "value")
        return
    years = max(0, day.year - birth.year - ((day.month, day.day) < (birth.month, birth.day)))
    maker.take(feature.name, years)
    maker.notes.append(f"{feature.name} is the age on {day}, {'the day of the newest result' if times else 'today'}.")


# When


def _when(observation: Mapping[str, Any]) -> Interval | None:
    """The first and the last moment that the Observation's time can mean."""
    period = _mapping(observation.get("effectivePeriod"))
    for text in (
        observation.get("effectiveDateTime"),
        observation.get("effectiveInstant"),
        period.get("end") or period.get("start"),
        observation.get("issued"),
    ):
        interval = _interval(_text(text))
        if interval is not None:
            return interval
    return None


def _interval(text: str) -> Interval | None:
    """Of a FHIR date, which may be a year or a month alone. A time without a zone counts as UTC."""
    parts = text.split("T")[0].split("-")
    whole = text + ("-01" * (3 - len(parts)) if "T" not in text else "")
    try:
        first = datetime.fromisoformat(whole)
        first = first.astimezone(UTC) if first.tzinfo else first.replace(tzinfo=UTC)
        if "T" in text:
            return first, first
        if len(parts) == 3:
            return first, first + timedelta(days=1, microseconds=-1)
        year, month = divmod(first.year * 12 + first.month - 1 + (12 if len(parts) == 1 else 1), 12)
        return first, first.replace(year=year, month=month + 1) - timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


# What a file of somebody else's may hold where something else belongs


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
