"""The XML files of a workbook, read as a stream: each element as it comes, none kept."""

from __future__ import annotations

from xml.parsers import expat
from zipfile import ZipFile


class Part:
    """Takes the elements of one XML file as they come, by their names without the namespace."""

    def start(self, name: str, attributes: dict[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...


def parse_part(archive: ZipFile, path: str, part: Part) -> None:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    names: dict[str, str] = {}  # with their namespace → without

    def local(name: str) -> str:
        found = names.get(name)
        if found is None:
            found = names[name] = name.rpartition(" ")[2]
        return found

    def start(name: str, attributes: dict[str, str]) -> None:
        part.start(local(name), attributes)

    def end(name: str) -> None:
        part.end(local(name))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = part.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    with archive.open(path) as file:
        parser.ParseFile(file)


def _refuse_doctype(*_: object) -> None:
    """A workbook has none; entities that unfold, and files that are fetched, begin with one."""
    raise ValueError("a document type")


def is_true(text: str | None) -> bool:
    return text in ("1", "true")
