"""Files that a person could upload, by mistake or not: each is read rightly or refused in words that help.

Each is made here, so that a reader sees what is hostile in it.
"""

import gzip
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.cohort import Cohort
from l2m_core.tables.table import Limits

ROWS = 24
AGES = [40 + (7 * i) % 31 for i in range(ROWS)]
LABS = [f"{1 + (5 * i) % 13}.{(3 * i) % 10}" for i in range(ROWS)]
DIED = [str(i % 3 == 0 and 1 or 0) for i in range(ROWS)]
ONE_MEGABYTE = Limits(megabytes=1)


@dataclass(frozen=True)
class Hostile:
    """refused: words that the refusal must hold; otherwise `right` says whether the cohort is right."""

    name: str
    data: bytes
    refused: tuple[str, ...] = ()
    right: Callable[[Cohort], bool] | None = None
    options: dict[str, Any] = field(default_factory=dict)


def text(columns: dict[str, list], delimiter: str = ",", end: str = "\n") -> str:
    """The columns as they are, without any quoting."""
    rows = [
        delimiter.join(columns),
        *(delimiter.join(map(str, cells)) for cells in zip(*columns.values(), strict=True)),
    ]
    return end.join(rows) + end


def usual(**replaced: list) -> dict[str, list]:
    return {"age": AGES, "lab": LABS, **replaced, "died": replaced.get("died", DIED)}


def csv(**replaced: list) -> bytes:
    return text(usual(**replaced)).encode()


def with_cell(cells: list, row: int, cell: str) -> list:
    return [*cells[:row], cell, *cells[row + 1 :]]


def lines() -> list[str]:
    return csv().decode().splitlines()


def is_usual(cohort: Cohort) -> bool:
    return (
        cohort.names == ("age", "lab")
        and np.array_equal(cohort.x[:, 0], np.array(AGES, dtype=np.float32))
        and np.array_equal(cohort.x[:, 1], np.array(LABS, dtype=np.float32))
        and np.array_equal(cohort.y, np.array(DIED, dtype=np.int64))
    )


def column_is(name: str, values: list) -> Callable[[Cohort], bool]:
    def check(cohort: Cohort) -> bool:
        found = cohort.x[:, cohort.names.index(name)]
        return np.array_equal(found, np.array(values, dtype=np.float32), equal_nan=True)

    return check


def levels_are(name: str, *levels: str) -> Callable[[Cohort], bool]:
    return lambda cohort: cohort.feature(name).levels == levels


def not_used(name: str) -> Callable[[Cohort], bool]:
    return lambda cohort: name not in cohort.names and any(f"'{name}'" in warning for warning in cohort.warnings)


def warned(*words: str) -> Callable[[Cohort], bool]:
    return lambda cohort: any(all(word in warning for word in words) for warning in cohort.warnings)


def both(*checks: Callable[[Cohort], bool]) -> Callable[[Cohort], bool]:
    return lambda cohort: all(check(cohort) for check in checks)


def zip_file() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return buffer.getvalue()


def parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def shape() -> list[Hostile]:
    short, long = lines(), lines()
    short[7] = short[7].rsplit(",", 1)[0]
    long[7] += ",9"
    middle = lines()
    middle.insert(5, "")
    return [
        Hostile("empty", b"", ("empty",)),
        Hostile("only blanks", b" \n\n  \n", ("empty",)),
        Hostile("only a header", b"age,lab,died\n", ("no rows",)),
        Hostile("nine rows", "\n".join(lines()[:10]).encode(), ("9 of 9", "at least 10")),
        Hostile("a single column", text({"died": DIED}).encode(), ("single column",)),
        Hostile("a short row", "\n".join(short).encode(), ("Row 8", "2 cells", "3")),
        Hostile("a long row", "\n".join(long).encode(), ("Row 8", "4 cells", "3")),
        Hostile(
            "every row one cell longer",  # read_csv would shift all values by one column
            "\n".join([lines()[0], *(line + ",0" for line in lines()[1:])]).encode(),
            ("Row 2", "4 cells"),
        ),
        Hostile("an unquoted comma in a text", csv(town=["a,b"] * ROWS), ("Row 2", "5 cells")),
        Hostile("a footer", csv() + b"Source: ward 3\n", ("Row 26", "1 cells")),
        Hostile("a title above the header", b"My study\n" + csv(), ("single column",)),
        Hostile("no header", "\n".join(lines()[1:]).encode(), ("no column 'died'", "header")),
        Hostile("a quote never closed", csv(sex=with_cell(["F", "M"] * 12, 3, '"F')), ("Row 5", "quotation mark")),
        Hostile("a quote inside a cell", csv(sex=with_cell(["F", "M"] * 12, 3, '"F"x')), ("Row 5", "quotation mark")),
        Hostile("a blank line in the middle", "\n".join(middle).encode(), right=is_usual),
        Hostile("carriage returns only", text(usual(), end="\r").encode(), right=is_usual),
        Hostile("windows line ends", text(usual(), end="\r\n").encode(), right=is_usual),
        Hostile("a line break in quotes", csv(note=['"a\nb"', "c"] * 12), right=levels_are("note", "a\nb", "c")),
        Hostile("a huge cell", csv(note=with_cell(["a", "b"] * 12, 0, "x" * 200_000)), ("Row 2", "131,072")),
        Hostile(
            "a million columns", (",".join(map(str, range(1_000_000))) + "\n").encode() * 2, ("1,000,000 columns",)
        ),
        Hostile(
            "cells that make careless patterns slow",
            csv(note=["1" * 60_000 + "x", "1" + "/" * 60_000 + " x", "1" + "," * 60_000, "1.1" * 20_000] * 6),
            ("Row 4", "60004 cells"),
        ),
        Hostile(
            "the same between semicolons",
            text(usual(note=[*["1" * 60_000 + "x", "1" + "/" * 60_000 + " x", "1,1" * 9000] * 8]), ";").encode(),
            right=not_used("note"),
        ),
        Hostile("501 columns", text({**{f"f{i}": AGES for i in range(500)}, "died": DIED}).encode(), ("501 columns",)),
        Hostile("too many rows", b"a,died\n" + b"1,0\n2,1\n" * 100_001, ("200,000 rows",)),
        Hostile("too large", b"a,died\n" + b"1,0\n" * 260_000, ("1 MB",), options={"limits": ONE_MEGABYTE}),
    ]


def containers() -> list[Hostile]:
    frame = pd.DataFrame({"age": AGES, "lab": [float(v) for v in LABS], "died": [int(v) for v in DIED]})
    return [
        Hostile("gzip", gzip.compress(csv()), right=is_usual),
        Hostile("gzip in two members", gzip.compress(csv()[:100]) + gzip.compress(csv()[100:]), right=is_usual),
        Hostile("gzip in a member for each row", b"".join(map(gzip.compress, csv().splitlines(True))), right=is_usual),
        Hostile("gzip with zeros behind", gzip.compress(csv()) + b"\0" * 10_000, right=is_usual),
        Hostile("gzip with empty members between", gzip.compress(b"") * 500 + gzip.compress(csv()), right=is_usual),
        Hostile("gzip of very many empty members", gzip.compress(b"") * 250_000 + gzip.compress(csv()), ("members",)),
        Hostile("gzip cut off", gzip.compress(csv())[:-30], ("cut off",)),
        Hostile("gzip with a wrong sum", gzip.compress(csv())[:-8] + b"12345678", ("damaged",)),
        Hostile("gzip with a tail", gzip.compress(csv()) + b"tail", ("damaged",)),
        Hostile("gzip that unfolds", gzip.compress(b"0" * 4_000_000), ("1 MB",), options={"limits": ONE_MEGABYTE}),
        Hostile("gzip in gzip", gzip.compress(gzip.compress(csv())), ("gzip within gzip",)),
        Hostile("parquet", parquet(frame), right=is_usual),
        Hostile("parquet cut off", parquet(frame)[:-20], ("Parquet", "damaged")),
        Hostile("parquet overwritten", parquet(frame)[:200] + b"\xff" * 200 + parquet(frame)[400:], ("Parquet",)),
        Hostile("parquet of dates", parquet(frame.assign(seen=pd.Timestamp("2020-01-01"))), ("'seen'", "dates")),
        Hostile("parquet of lists", parquet(frame.assign(many=[[1, 2]] * ROWS)), ("'many'", "lists")),
        Hostile(
            "parquet of lists, ignored",
            parquet(frame.assign(many=[[1, 2]] * ROWS)),
            right=is_usual,
            options={"schema": "features:\n- {name: many, role: ignored}\n"},
        ),  # fmt: skip
        Hostile(
            "parquet of one long text in each row",
            parquet(frame.loc[np.arange(3000) % ROWS].assign(note=pd.Categorical(["x" * 10_000] * 3000))),
            ("'note'", "1 MB"),
            options={"limits": ONE_MEGABYTE},
        ),
        Hostile("an Excel workbook", zip_file(), ("Excel",)),
        Hostile("an old Excel file", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, ("Excel",)),
        Hostile("a PDF", b"%PDF-1.7\n%\xe2\xe3\n", ("PDF",)),
        Hostile("an image", b"\x89PNG\r\n\x1a\n" + b"\0" * 90, ("image",)),
        Hostile("a pickle", b"\x80\x04\x95\x0b\0\0\0\0\0\0\0\x8c\x02os\x94\x8c", ("pickle",)),
        Hostile("a web page", b"<!DOCTYPE html><html><script>alert(1)</script></html>", ("web page",)),
        Hostile("JSON", b'[{"age": 1, "died": 0}]', ("JSON",)),
        Hostile("random bytes", np.random.default_rng(0).bytes(5000), ("binary",)),
    ]


def encodings() -> list[Hostile]:
    accented = text({"\u00e2ge": AGES, "sexe": ["f\u00e9minin", "masculin"] * 12, "died": DIED})
    accents = levels_are("sexe", "f\u00e9minin", "masculin")
    return [
        Hostile("UTF-8 with its mark", b"\xef\xbb\xbf" + csv(), right=is_usual),
        Hostile("UTF-16", text(usual()).encode("utf-16"), right=is_usual),
        Hostile("UTF-16 big-endian", b"\xfe\xff" + text(usual()).encode("utf-16-be"), right=is_usual),
        Hostile("UTF-16 without its mark", text(usual()).encode("utf-16-le"), ("NUL", "UTF-16")),
        Hostile("UTF-16 cut in half", text(usual()).encode("utf-16")[:-1], ("UTF-16",)),
        Hostile("Windows-1252", accented.encode("cp1252"), right=both(accents, warned("Windows-1252"))),
        Hostile("UTF-8 accents", accented.encode(), right=accents),
        Hostile("bytes of no text", csv() + b"\x81\x8d,1,1\n", ("UTF-8",)),
        Hostile("a NUL in a cell", csv(sex=with_cell(["F", "M"] * 12, 3, "F\0")), ("NUL",)),
    ]


def delimiters() -> list[Hostile]:
    comma = [lab.replace(".", ",") for lab in LABS]
    tall = [f"1,{60 + i}" for i in range(ROWS)]
    return [
        Hostile("semicolons", text(usual(), ";").encode(), right=is_usual),
        Hostile("tabs", text(usual(), "\t").encode(), right=is_usual),
        Hostile("bars", text(usual(), "|").encode(), right=is_usual),
        Hostile("sep=; as first line", b"sep=;\n" + text(usual(), ";").encode(), right=is_usual),
        Hostile("decimal commas", text(usual(lab=comma), ";").encode(), right=is_usual),
        Hostile("decimal commas in quotes", csv(lab=[f'"{v}"' for v in comma]), right=is_usual),
        Hostile("commas in names", text({"age": AGES, "lab": comma, "weight,kg": tall, "died": DIED}, ";").encode(),
                right=column_is("weight,kg", [float(v.replace(",", ".")) for v in tall])),
        Hostile("two delimiters that both fit", text({"a,b;c": ["x,y;z", "u,v;w"] * 12}).encode(),
                ("comma and semicolon",), options={"outcome": "a"}),
        Hostile("an unknown delimiter asked for", csv(), ("delimiter",), options={"delimiter": "~"}),
    ]  # fmt: skip


def names() -> list[Hostile]:
    twice = b"age,age,died\n" + b"\n".join(
        b"%d,%d,%d" % (i, 50 - i * 2, i % 2) for i in [1, 3, 2, 6, 5, 4, 9, 7, 8, 11, 10]
    )
    blank = b",age,,died\n" + b"\n".join(b"%d,%d,%d,%d" % (i, i * i % 7, i % 5, i % 2) for i in range(20))
    return [
        Hostile("a name twice", twice, right=both(lambda c: c.names == ("age", "age (2)"), warned("'age'", "twice"))),
        Hostile("the outcome twice", twice, ("Several columns", "'age'"), options={"outcome": "age"}),
        Hostile("names left empty", blank, right=both(lambda c: c.names == ("age", "column 3"), not_used("column 1"))),
        Hostile("blanks around names", text({" age ": AGES, "lab": LABS, " died": DIED}).encode(), right=is_usual),
        Hostile("hidden characters in a name", text({"a\u200bge\u202e": AGES, "lab": LABS, "died": DIED}).encode(),
                right=both(is_usual, warned("Hidden characters"))),
        Hostile("a name of 300 characters", text({"a" * 300: AGES, "died": DIED}).encode(), ("300 characters",)),
        Hostile("names that are formulas and markup",
                text({"=1+1": AGES, "![x](http://e.com/p)": LABS, "<script>": AGES, "died": DIED}).encode(),
                right=lambda c: c.names == ("=1+1", "![x](http://e.com/p)", "<script>")),
        Hostile("a wrong outcome", csv(), ("no column 'dide'", "'died'"), options={"outcome": "dide"}),
        Hostile("no outcome stated", csv(), ("State the outcome",), options={"outcome": None}),
        Hostile("a wrong baseline feature", csv(), ("no column 'aeg'", "'age'"), options={"baseline": ["aeg"]}),
        Hostile("a cost of a wrong feature", csv(), ("no column 'lap'", "'lab'"), options={"costs": {"lap": 2}}),
        Hostile("a negative cost", csv(), ("'lab'", "cost"), options={"costs": {"lab": -1}}),
        Hostile("the outcome as a feature", csv(), ("'died'", "outcome"), options={"baseline": ["died"]}),
        Hostile("a schema with an unknown key", csv(), ("unknown key 'costs'", "'cost'"),
                options={"schema": "features:\n- name: lab\n  costs: 3\n"}),
    ]  # fmt: skip


def numbers() -> list[Hostile]:
    thousands = [f'"{1 + i % 9},{100 + 7 * i}"' for i in range(ROWS)]
    plain = [1000 * (1 + i % 9) + 100 + 7 * i for i in range(ROWS)]
    lab = LABS
    return [
        Hostile("1e999", csv(lab=with_cell(lab, 4, "1e999")), ("'lab'", "row 6", "infinite")),
        Hostile("1e39, too large for 32 bits", csv(lab=with_cell(lab, 4, "-1e39")), ("'lab'", "row 6")),
        Hostile("inf", csv(lab=with_cell(lab, 4, "inf")), ("'lab'", "row 6", "'inf'")),
        Hostile("a detection limit", csv(lab=with_cell(lab, 4, "<5")), ("'lab'", "row 6", "'<5'", "detection limit")),
        Hostile("a detection limit, taken", csv(lab=with_cell(lab, 4, "<5")), options={"censored": "limit"},
                right=both(column_is("lab", with_cell([float(v) for v in lab], 4, 5.0)), warned("'<5'", "limit"))),
        Hostile("a remark among numbers", csv(lab=with_cell(lab, 4, "hemolyzed")), ("'lab'", "row 6", "'hemolyzed'")),
        Hostile("mostly a remark", csv(lab=[*lab[:11], *["pending"] * 13]), ("'lab'", "row 13", "'pending'")),
        Hostile("a spreadsheet's error", csv(lab=with_cell(lab, 4, "#DIV/0!")), ("'lab'", "row 6", "#DIV/0!")),
        Hostile("a letter O for a zero", csv(lab=with_cell(lab, 4, "1O.5")), ("'lab'", "row 6", "1O.5")),
        Hostile("two points in a number", csv(lab=with_cell(lab, 4, "1..5")), ("'lab'", "row 6", "1..5")),
        Hostile("units in cells", csv(lab=[f"{v} mg/dl" for v in lab]), ("'lab'", "row 2", "unit")),
        Hostile("percent signs", csv(lab=[f"{v}%" for v in lab]), ("'lab'", "row 2", "unit")),
        Hostile("currencies", csv(lab=[f"${v}" for v in lab]), ("'lab'", "row 2", "unit")),
        Hostile("two numbers in a cell", csv(bp=[f"{110 + i}/{70 + i}" for i in range(ROWS)]), ("'bp'", "two numbers")),
        Hostile("thousands separated", csv(platelets=[*thousands[:-1], '"1,234,567"']),
                right=column_is("platelets", [*plain[:-1], 1234567])),
        Hostile("1,234 beside decimal points", csv(platelets=thousands), ("'platelets'", "row 2", "1,100", "decimal")),
        Hostile("1,234 and nothing that decides", text({"platelets": thousands, "died": DIED}).encode(),
                ("'platelets'", "row 2", "1,100", "decimal")),
        Hostile("1,234 decided by a person", text({"platelets": thousands, "died": DIED}).encode(),
                right=column_is("platelets", plain), options={"decimal": "."}),
        Hostile("both decimal signs in a column", text(usual(lab=with_cell(lab, 4, "3,25")), ";").encode(),
                ("'lab'", "row 6", "decimal sign")),
        Hostile("1.234 beside decimal commas",
                text({"a": [v.replace(".", ",") for v in lab], "b": [f"{1 + i}.{200 + i}" for i in range(ROWS)],
                      "died": DIED}, ";").encode(), ("'b'", "row 2", "1.200", "decimal")),
        Hostile("1.234 beside decimal commas, decided by a person",
                text({"a": [v.replace(".", ",") for v in lab], "b": [f"{1 + i}.{200 + i}" for i in range(ROWS)],
                      "died": DIED}, ";").encode(), options={"decimal": ","},
                right=column_is("b", [1000 * (1 + i) + 200 + i for i in range(ROWS)])),
        Hostile("blanks between thousands", csv(p=[f"{1 + i % 9}\u00a0{100 + 7 * i}" for i in range(ROWS)]),
                right=column_is("p", plain)),
        Hostile("the true minus sign", csv(lab=["\u2212" + v for v in lab]),
                right=column_is("lab", [-float(v) for v in lab])),
        Hostile("digits of another script",
                csv(lab=["".join(chr(0x660 + int(digit)) for digit in str(age)) for age in AGES]),
                right=column_is("lab", AGES)),
        Hostile("underscores, which float() would take", csv(lab=[f"1_{a}" for a in AGES]),
                right=lambda c: "lab" not in c.names or c.feature("lab").kind == "category"),
        Hostile("missing in many ways",
                csv(lab=[*lab[:12], "NA", "?", "", "-", "n/a", "NaN", "NULL", ".", "#N/A", "--", " ", "<NA>"]),
                right=column_is("lab", [*map(float, lab[:12]), *[float("nan")] * 12])),
        Hostile("'not done' among numbers", csv(lab=with_cell(lab, 4, "not done")),
                right=both(column_is("lab", with_cell([float(v) for v in lab], 4, float("nan"))), warned("not done"))),
        Hostile("-999 for missing, stated", csv(lab=with_cell(lab, 4, "-999.0")), options={"missing": ["-999"]},
                right=column_is("lab", with_cell([float(v) for v in lab], 4, float("nan")))),
        Hostile("out of the stated range", csv(lab=with_cell(lab, 4, "700")), ("'lab'", "row 6", "700", "0 to 30"),
                options={"schema": "features:\n- {name: lab, minimum: 0, maximum: 30, kind: number}\n"}),
    ]  # fmt: skip


def kinds() -> list[Hostile]:
    many = [f"w{i:03d}" for i in range(120)] + ["common"] * 280
    wide = {"word": many, "x": [i * 7 % 13 for i in range(400)], "died": [str(i % 2) for i in range(400)]}
    return [
        Hostile("ids with leading zeros", csv(pid=[f"{i:05d}" for i in range(ROWS)]),
                right=both(is_usual, not_used("pid"))),
        Hostile("codes with leading zeros", csv(ward=["007", "012", "100"] * 8),
                right=levels_are("ward", "007", "012", "100")),
        Hostile("row numbers", csv(row=list(range(1, ROWS + 1))), right=both(is_usual, not_used("row"))),
        Hostile("a constant column", csv(unit=["A"] * ROWS), right=both(is_usual, not_used("unit"))),
        Hostile("an empty column", csv(x=[""] * ROWS), right=both(is_usual, not_used("x"))),
        Hostile("nothing left to use", text({"a": [1] * ROWS, "b": [""] * ROWS, "died": DIED}).encode(),
                ("No feature", "'a' holds one and the same value", "'b' is empty")),
        Hostile("nothing but identifiers", text({"a": [f"x{i}" for i in range(ROWS)], "died": DIED}).encode(),
                ("No feature", "'a' looks like an identifier", "state its kind in the schema")),
        Hostile("dates", csv(seen=[f"2020-01-{i + 1:02d}" for i in range(ROWS)]), ("'seen'", "date", "days since")),
        Hostile("dates, ignored", csv(seen=[f"2020-01-{i + 1:02d}" for i in range(ROWS)]), right=is_usual,
                options={"schema": "features:\n- {name: seen, role: ignored}\n"}),
        Hostile("dates with a time", csv(seen=[f"3/{i + 1}/20 10:15" for i in range(ROWS)]), ("'seen'", "date")),
        Hostile("dates with names of months", csv(seen=[f"{i + 1} Mar 2020" for i in range(ROWS)]), ("'seen'", "date")),
        Hostile("dates without any mark", csv(seen=[20200101 + i for i in range(ROWS)]), ("'seen'", "date")),
        Hostile("times", csv(at=[f"{i:02d}:30" for i in range(ROWS)]), ("'at'", "time")),
        Hostile("plus and minus", csv(test=["+", "-", "-"] * 8), right=levels_are("test", "-", "+")),
        Hostile("yes in three spellings", csv(smoker=["Yes", "yes", "no"] * 8),
                right=both(levels_are("smoker", "no", "Yes"), warned("'smoker'", "case"))),
        Hostile("blood groups that differ by case", csv(group=["K", "k", "0"] * 8),
                right=both(lambda c: set(c.feature("group").levels) == {"K", "k", "0"},
                           warned("'group'", "two different"))),
        Hostile("many levels", text(wide).encode(),
                right=both(lambda c: len(c.feature("word").levels) == 50, warned("'word'", "50", "'other'"))),
        Hostile("free text", csv(note=[f"{i} " + "long " * 60 for i in range(12)] * 2), right=not_used("note")),
        Hostile("codes among numbers", csv(code=["250.1", "401", "V57", "E11", "V58.1", "414"] * 4),
                right=both(lambda c: c.feature("code").kind == "category", warned("'code'", "mixes"))),
        Hostile("coded integers", csv(grade=[0, 1, 2, 3] * 6), right=lambda c: c.feature("grade").kind == "number"),
        Hostile("a level outside the schema's two", csv(sex=["F", "M", "X"] * 8), ("'sex'", "'X'", "F"),
                options={"schema": "features:\n- {name: sex, kind: binary, levels: [F, M]}\n"}),
        Hostile("three values stated as binary", csv(sex=["F", "M", "X"] * 8), ("'sex'", "3 different", "binary"),
                options={"schema": "features:\n- {name: sex, kind: binary}\n"}),
        Hostile("texts stated as numbers", csv(sex=["F", "M"] * 12), ("'sex'", "'F'", "not a number"),
                options={"schema": "features:\n- {name: sex, kind: number}\n"}),
    ]  # fmt: skip


def outcomes() -> list[Hostile]:
    return [
        Hostile("one class", csv(died=["1"] * ROWS), ("'died'", "one and the same")),
        Hostile("no outcome at all", csv(died=[""] * ROWS), ("0 of 24", "'died'")),
        Hostile("an outcome with a few holes", csv(died=with_cell(DIED, 3, "NA")),
                right=both(lambda c: len(c) == ROWS - 1, warned("1 of 24", "'died'"))),
        Hostile("eleven classes", csv(died=[f"c{i % 11}" for i in range(ROWS)]),
                ("'died'", "11 different", "10 classes")),
        Hostile("ten classes", csv(died=[f"c{i % 10}" for i in range(ROWS)]), right=lambda c: c.n_classes == 10),
        Hostile("an infinite outcome", csv(died=with_cell(LABS, 3, "1e999")), ("outcome", "row 5", "infinite")),
        Hostile("a censored outcome", csv(died=with_cell(LABS, 3, "<5")), ("outcome", "row 5", "<5")),
        Hostile("a date as outcome", csv(died=[f"2020-01-{i + 1:02d}" for i in range(ROWS)]), ("outcome", "date")),
        Hostile("a continuous outcome", csv(died=LABS),
                right=lambda c: c.kind == "continuous" and c.y.dtype == np.float32),
        Hostile("a positive class of wrong name", csv(died=["alive", "dead"] * 12), ("positive", "'deat'", "'dead'"),
                options={"positive": "deat"}),
        Hostile("texts stated as continuous", csv(died=["alive", "dead"] * 12),
                ("outcome", "'died'", "'alive'", "not a number"),
                options={"schema": "outcome: {name: died, kind: continuous}\n"}),
        Hostile("a class outside those stated", csv(died=["a", "b", "c"] * 8), ("'died'", "'c'"),
                options={"schema": "outcome: {name: died, kind: multiclass, classes: [a, b]}\n"}),
    ]  # fmt: skip


CASES = [*shape(), *containers(), *encodings(), *delimiters(), *names(), *numbers(), *kinds(), *outcomes()]
