"""Bounds of what a query of the UI may cost: how many fields it names, once its fragments are written out.

A few kilobytes of aliases and fragments ask for millions of fields. Dagster would answer for minutes, also a sender
that has gone.
"""

from functools import cache
from typing import Final

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)

MOST_FIELDS: Final = 5_000
"""Of a query. The pages of Dagster's UI ask for some hundred."""


def named_fields(document: DocumentNode) -> int:
    """Count the fields of all operations of ``document``, with its fragments written out.

    Raises RecursionError for fragments that contain themselves.
    """
    fragments = {each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)}

    @cache
    def of_fragment(name: str) -> int:
        return of(fragments[name].selection_set) if name in fragments else 0

    def of(selections: SelectionSetNode | None) -> int:
        found = 0
        for each in selections.selections if selections else ():
            if isinstance(each, FieldNode):
                found += 1 + of(each.selection_set)
            elif isinstance(each, FragmentSpreadNode):
                found += of_fragment(each.name.value)
            elif isinstance(each, InlineFragmentNode):
                found += of(each.selection_set)
        return found

    return sum(of(each.selection_set) for each in document.definitions if isinstance(each, OperationDefinitionNode))
