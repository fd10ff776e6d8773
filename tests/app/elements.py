"""A report as a browser reads it."""

from html.parser import HTMLParser


class Elements(HTMLParser):
    """The tags and the addresses of a page, as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes) -> None:
        self.tags.add(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "action", "data", "srcset")]
        self.handlers += [name for name, _ in attributes if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)
