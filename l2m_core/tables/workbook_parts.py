"""The parts of an Excel workbook (.xlsx): XML files in a zip archive, within bounds.

Names are those of Office Open XML (ECMA-376, part 1): the workbook names its sheets, and relations tell in which part each is.
Nothing is computed, no macro and no link is followed.
"""

from __future__ import annotations

import io
import posixpath
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from l2m_core.errors import CohortError
from l2m_core.tables.table import Limits
from l2m_core.tables.workbook_cells import Cells, Formats, Sheet, Texts
from l2m_core.tables.workbook_xml import Part, is_true, parse_part

MOST_PARTS = 10_000
UNPACKED = 2  # times what a file may be: XML takes more room than the same cells in a CSV
DAMAGED = "The Excel workbook is damaged or of an unknown kind. Save it again as .xlsx, or as CSV."
_HAS_CELL = re.compile(rb"<(?:\w+:)?c[ />]")


@contextmanager
def reading_workbook() -> Iterator[None]:
    """Turns whatever a damaged file leads to into one refusal."""
    try:
        yield
    except CohortError:
        raise
    except (
        expat.ExpatError,
        BadZipFile,
        zlib.error,
        OSError,
        EOFError,
        ValueError,
        LookupError,
        ArithmeticError,
    ) as error:
        raise CohortError(DAMAGED) from error
    except (
        RuntimeError,
        MemoryError,
    ) as error:  # a part behind a password, or compressed in a way that zipfile does not know
        raise CohortError(DAMAGED) from error


class Workbook:
    """The archive, with what its parts say of sheets, styles and texts."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        # Each entry of the archive's directory begins with these bytes; as objects a million of them take a gigabyte.
        if data.count(b"PK\x01\x02") > MOST_PARTS:
            raise CohortError("The Excel workbook has too many parts. Save the sheet as CSV.")
        self.archive = ZipFile(io.BytesIO(data))
        # zipfile unpacks no more of a part than its entry says.
        if sum(part.file_size for part in self.archive.infolist()) > UNPACKED * limits.size:
            raise CohortError(
                f"The Excel workbook unpacks to more than {UNPACKED * limits.megabytes} MB. Keep the sheet, columns and rows "
                "that matter, or save the sheet as CSV."
            )
        path = self._find()
        related = _Relations.read(self.archive, path)
        self._strings, self._styles = related.of_kind("sharedStrings"), related.of_kind("styles")
        listed = _SheetList()
        parse_part(self.archive, path, listed)
        self._from_1904 = listed.from_1904
        of_sheets = {identifier: related.targets[identifier] for identifier in related.of_kind("worksheet")}
        self.paths = {name: of_sheets[identifier] for name, identifier, _ in listed.found if identifier in of_sheets}
        visible = {name for name, _, is_visible in listed.found if is_visible}
        self.sheets = tuple(name for name, path in self.paths.items() if name in visible and self._has_cells(path))
        """The names of those that can be seen and have cells."""
        self._targets = related.targets

    def _find(self) -> str:
        names = set(self.archive.namelist())
        if "mimetype" in names and b"opendocument" in self.archive.open("mimetype").read(100):
            raise CohortError("This is an OpenDocument file. Save it as an Excel workbook (.xlsx), or as CSV (UTF-8).")
        office = _Relations.read(self.archive, "") if "_rels/.rels" in names else _Relations()
        documents = [office.targets[identifier] for identifier in office.of_kind("officeDocument")]
        path = documents[0] if documents else "xl/workbook.xml"
        if path not in names or not path.startswith("xl/"):
            raise CohortError(
                "This is a zip archive, but no Excel workbook (.xlsx). Unpack it, or save the table as CSV."
            )
        if path.endswith(".bin"):
            raise CohortError("This is a binary Excel workbook (.xlsb). Save it as .xlsx, or as CSV (UTF-8).")
        return path

    def read(self, sheet: str) -> Sheet:
        texts, formats = Texts(), Formats()
        for identifiers, part in ((self._strings, texts), (self._styles, formats)):
            for identifier in identifiers[:1]:
                parse_part(self.archive, self._targets[identifier], part)
        cells = Cells(texts.found, formats.shown(), self._from_1904)
        parse_part(self.archive, self.paths[sheet], cells)
        return cells.sheet

    def _has_cells(self, path: str) -> bool:
        with self.archive.open(path) as file:
            before = b""
            while piece := file.read(1 << 16):
                if _HAS_CELL.search(before + piece):
                    return True
                before = piece[-32:]
        return False


class _Relations(Part):
    """Which other parts a part needs: identifier → path, and → kind."""

    def __init__(self, folder: str = "") -> None:
        self.folder = folder
        self.targets: dict[str, str] = {}
        self.kinds: dict[str, str] = {}

    @classmethod
    def read(cls, archive: ZipFile, path: str) -> _Relations:
        folder, name = posixpath.split(path)
        relations = cls(folder)
        parse_part(archive, posixpath.join(folder, "_rels", f"{name}.rels"), relations)
        return relations

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", self.folder, attributes["Target"])).lstrip("/")
            self.targets[attributes["Id"]] = target
            self.kinds[attributes["Id"]] = attributes["Type"].rpartition("/")[2]

    def of_kind(self, kind: str) -> list[str]:
        return [identifier for identifier, found in self.kinds.items() if found == kind]


class _SheetList(Part):
    def __init__(self) -> None:
        self.found: list[tuple[str, str, bool]] = []  # name, identifier, whether it can be seen
        self.from_1904 = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            identifier = next((value for key, value in attributes.items() if key.endswith(" id")), "")
            self.found.append((attributes["name"], identifier, attributes.get("state", "visible") == "visible"))
        elif name == "workbookPr":
            self.from_1904 = is_true(attributes.get("date1904"))
