"""Excel workbooks for tests: written by openpyxl, or as XML of one's own where no program would write such a one."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import openpyxl

TYPES = "http://schemas.openxmlformats.org"
RELATION = f"{TYPES}/officeDocument/2006/relationships"


def workbook(change: Callable[[Any], object] | None = None, **sheets: Sequence[Sequence[Any]]) -> bytes:
    """Sheets of rows; `change` then does what it will with the workbook."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
    if change is not None:
        change(book)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def with_xml(rows: str, strings: str = "", after: str = "", more: Mapping[str, str | bytes] | None = None) -> bytes:
    """A workbook of one sheet 'Data' whose rows, and what comes after them, are XML."""
    main = f'xmlns="{TYPES}/spreadsheetml/2006/main" xmlns:r="{RELATION}"'
    package = f'xmlns="{TYPES}/package/2006/relationships"'
    parts: dict[str, str | bytes] = {
        "_rels/.rels": f'<Relationships {package}><Relationship Id="a" Type="{RELATION}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main}><sheets><sheet name="Data" sheetId="1" r:id="b"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f"<Relationships {package}>"
        f'<Relationship Id="b" Type="{RELATION}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="c" Type="{RELATION}/sharedStrings" Target="/xl/sharedStrings.xml"/></Relationships>',
        "xl/sharedStrings.xml": f"<sst {main}>{strings}</sst>",
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{rows}</sheetData>{after}</worksheet>",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in (parts | dict(more or {})).items():
            archive.writestr(path, content)
    return buffer.getvalue()


def row(number: int, *cells: str) -> str:
    return f'<row r="{number}">{"".join(cells)}</row>'


def text(place: str, words: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{words}</t></is></c>'


def number(place: str, digits: str, before: str = "") -> str:
    return f'<c r="{place}">{before}<v>{digits}</v></c>'
