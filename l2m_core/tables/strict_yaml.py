"""YAML from people, read strictly: nothing is guessed, merged or built.

Usual YAML turns `no` into False and `2020-01-01` into a date, which damages level names. So in a schema every scalar is a
text (or None), and whoever needs a number converts it. In settings numbers and true and false are themselves. In both,
aliases (with which a few lines unfold into more than memory holds), duplicate keys and tags of other types are refused.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import yaml

LARGEST_TEXT = 2_000_000
DEEPEST = 20
LONGEST_NUMBER = 100  # characters


class YamlProblem(ValueError):
    """The text is not YAML that we accept; the message is one sentence for a person."""


class _StrictLoader(yaml.SafeLoader):
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

    def construct_number(self, node):
        if len(node.value) > LONGEST_NUMBER:  # Python refuses to write very long ones
            raise YamlProblem(f"Line {node.start_mark.line + 1}: a number has more than {LONGEST_NUMBER} characters.")
        return self.construct_yaml_int(node) if node.tag == _INT else self.construct_yaml_float(node)


class _TextLoader(_StrictLoader):
    """Texts and None."""


class _ValueLoader(_StrictLoader):
    """Texts, None, numbers, true and false."""


_BOOL, _INT, _FLOAT, _NULL = (f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "null"))
_PLAIN = (_NULL, *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")), None)  # None: any other tag, refused


def _keep_only(loader: type[_StrictLoader], kinds: tuple[str, ...]) -> None:
    """Of what YAML can mean, these kinds besides plain texts, lists and mappings."""
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag in (_NULL, *kinds)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    loader.yaml_constructors = {tag: yaml.SafeLoader.yaml_constructors[tag] for tag in (*_PLAIN, *kinds)}


_keep_only(_TextLoader, ())
_keep_only(_ValueLoader, (_BOOL, _INT, _FLOAT))
for _tag in (_INT, _FLOAT):
    _ValueLoader.add_constructor(_tag, _StrictLoader.construct_number)


def read_yaml(text: str) -> Any:
    """Nested dicts, lists, texts and None."""
    return _read(text, _TextLoader, LARGEST_TEXT)


def read_values(text: str, longest: int) -> Any:
    """Nested dicts, lists, texts, None, numbers, True and False, from at most so many characters."""
    return _read(text, _ValueLoader, longest)


def _read(text: str, kind: type[_StrictLoader], longest: int) -> Any:
    if len(text) > longest:
        raise YamlProblem(f"The text has {len(text):,} characters; at most {longest:,} are read.")
    loader = None
    try:
        loader = kind(text)
        return loader.get_single_data()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise YamlProblem(f"Not valid YAML ({where}{getattr(error, 'problem', None) or 'unreadable text'}).") from error
    except YamlProblem:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
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
