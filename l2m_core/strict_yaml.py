"""YAML from people, read strictly: plain texts stay texts, and nothing is guessed, merged or built.

Usual YAML turns `no` into False and `2020-01-01` into a date, which damages level names. Here every scalar is a text
(or None), whoever needs a number converts it, and aliases, duplicate keys and custom tags are refused.
"""

from __future__ import annotations

import unicodedata

import yaml

LARGEST_TEXT = 2_000_000
DEEPEST = 20


class YamlProblem(ValueError):
    """The text is not YAML that we accept; the message is one sentence for a person."""


class _TextLoader(yaml.SafeLoader):
    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise YamlProblem(f"Line {mark.line + 1} uses an alias (*name): write the value out instead.")
        self.depth = getattr(self, "depth", 0) + 1
        if self.depth > DEEPEST:
            raise YamlProblem(f"The text is nested more than {DEEPEST} levels deep.")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlProblem(f"Line {key_node.start_mark.line + 1}: a key must be a plain text.")
            if key in seen:
                raise YamlProblem(f"Line {key_node.start_mark.line + 1}: key '{key}' appears twice.")
            seen.add(key)
        return super().construct_mapping(node, deep)


_NULL = "tag:yaml.org,2002:null"
_TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag == _NULL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(text: str):
    """Nested dicts, lists, texts and None."""
    if len(text) > LARGEST_TEXT:
        raise YamlProblem(f"The text has {len(text):,} characters; at most {LARGEST_TEXT:,} are read.")
    loader = None
    try:
        loader = _TextLoader(text)
        return loader.get_single_data()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise YamlProblem(f"Not valid YAML ({where}{getattr(error, 'problem', None) or 'unreadable text'}).") from error
    except YamlProblem:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise YamlProblem("Not valid YAML.") from error
    finally:
        if loader is not None:
            loader.dispose()


class _TextDumper(yaml.SafeDumper):
    """Control and separator characters are escaped: written plainly, YAML would fold some of them into blanks."""

    def represent_text(self, text: str):
        plain = all(unicodedata.category(character) not in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp") for character in text)
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_TextDumper.add_representer(str, _TextDumper.represent_text)


def write_yaml(data) -> str:
    """The text that `read_yaml` reads back to the same texts; keys keep their order."""
    return yaml.dump(data, Dumper=_TextDumper, sort_keys=False, allow_unicode=True, width=1000)
