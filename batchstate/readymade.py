"""Ready-made lifecycles."""

from __future__ import annotations

from typing import Final

from batchstate.lifecycle import Lifecycle

__all__ = ["CLAIM", "MERGE_QUEUE"]

MERGE_QUEUE: Final = Lifecycle.parse("""
    creating | created | speculating | merging | succeeded | failed | cancelling | cancelled
    creating > created > speculating > merging > succeeded
    creating | created | speculating | merging > failed | cancelling
    cancelling > cancelled | succeeded | failed
""")
"""A merge queue: a batch of changes is built, tried against what is ahead of it, and merged.

The main line is `creating > created > speculating > merging > succeeded`. Any step of it may fail,
and until the merge is done a cancellation may be asked for. `cancelling` is a state and no end,
because whoever works on the batch has yet to notice: it ends in `cancelled`, or in `succeeded` or
`failed` where the request came too late.

No batch goes back. A try that is run again in `speculating` is a move to the present state, which
is always allowed; a batch that cannot be merged any more fails, and its requests begin anew in
another batch, so that each attempt is on record. With no cycle in it, a message that names the
source of its move is enough to move a batch once only.
"""

CLAIM: Final = Lifecycle.parse("claimed > settled | abandoned", settled="settled", abandoned="abandoned")
"""What a claim's batch goes through: held, then settled by its holder, or abandoned when the lease
lapsed. Only claims move batches through it."""
