"""How much there is in trees that may stand in one another many times over, each opened once.

Twenty-six trees can be 10^25 paths: what walks them path by path never ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

#: More paths than this between two trees are refused; a repository of millions of files is honest.
MOST_PATHS = 10_000_000

Node = TypeVar("Node", bound=Hashable)


def unfolded(
    top: Node, below: Mapping[Node, Sequence[Node]], own: Mapping[Node, int], *, most: int
) -> int:
    """The sum of what the nodes hold, each as often as it is reached from the top.

    Args:
        top: Where to begin.
        below: The nodes that a node leads to, one several times where it does so; without cycles.
        own: What a node holds itself.
        most: What more than this is, is given as one more than this.
    """
    sums: dict[Node, int] = {}
    waiting = [top]
    while waiting:
        node = waiting.pop()
        if node in sums:
            continue
        nodes = below.get(node, ())
        missing = {one for one in nodes if one not in sums}
        if missing:
            # It comes again once all that it leads to has been summed up.
            waiting += [node, *missing]
        else:
            sums[node] = min(own.get(node, 0) + sum(sums[one] for one in nodes), most + 1)
    return sums[top]
