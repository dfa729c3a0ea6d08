"""Templates whose messages are translated when they are compiled, so that it costs nothing when they are rendered."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from jinja2 import Environment, nodes
from jinja2.visitor import NodeTransformer
from markupsafe import Markup

from backend.web.catalogs import Messages

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_GETTEXT = ("_", "gettext")
_NO_CHANGE_IN_ENGLISH = ("translated", "source_name")
_NAMES = (*_GETTEXT, "ngettext", "namespace")
"""That templates know without being given them."""


class TranslatedEnvironment(Environment):
    """The templates in one language."""

    def __init__(self, messages: Messages, **options: Any) -> None:
        super().__init__(extensions=["jinja2.ext.i18n"], **options)
        self.policies["ext.i18n.trimmed"] = True
        # The extension adds this to the environment, which its types do not say.
        install = vars(self)["install_gettext_callables"]
        install(messages.translations.gettext, messages.translations.ngettext, newstyle=True)
        # All of them are copied for each rendering.
        self.globals = {name: self.globals[name] for name in _NAMES}
        self._messages = messages

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = super()._parse(source, name, filename)
        translated: nodes.Template = _Translation(self._messages).visit(template)
        return translated


class _Translation(NodeTransformer):
    """Puts what a message says in place of the call that would look it up; what is not shown directly stays a call."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        visited: nodes.Node = super().generic_visit(node, *args, **kwargs)
        for name in ("body", "else_"):
            if isinstance(held := getattr(visited, name, None), list):
                setattr(visited, name, list(_merge_outputs(held)))
        return visited

    def visit_Output(self, node: nodes.Output) -> nodes.Output:
        self.generic_visit(node)
        node.nodes = [part for each in node.nodes for part in self._list_parts(each)]
        return node

    def visit_Filter(self, node: nodes.Filter) -> nodes.Node:
        self.generic_visit(node)
        is_needless = node.name in _NO_CHANGE_IN_ENGLISH and self._messages.language == "en"
        return node.node if is_needless and node.node is not None else node

    def _list_parts(self, node: nodes.Expr) -> list[nodes.Expr]:
        """Return the texts of a message and the values between them."""
        if not isinstance(node, nodes.Call) or not _is_message(node):
            return [node]
        english = node.args[0].as_const()
        values = {each.key: each.value for each in node.kwargs}
        parts = _PLACEHOLDER.split(self._messages.translations.gettext(english))
        return [
            values[part] if index % 2 else nodes.Const(Markup(part.replace("%%", "%")))
            for index, part in enumerate(parts)
        ]


def _merge_outputs(body: list[nodes.Node]) -> Iterator[nodes.Node]:
    """Merge a message with what stands before and behind it, as if it were no block of its own."""
    for is_output, group in groupby(body, lambda node: isinstance(node, nodes.Output)):
        found = list(group)
        if is_output and len(found) > 1:
            parts = [part for each in found for part in each.iter_child_nodes()]
            yield nodes.Output(parts, lineno=found[0].lineno)
        else:
            yield from found


def _is_message(node: nodes.Call) -> bool:
    is_gettext = isinstance(node.node, nodes.Name) and node.node.name in _GETTEXT
    return is_gettext and isinstance(node.args[0], nodes.Const)
