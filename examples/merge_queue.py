"""A merge queue on real changes: the pipeline of `batchstate demo`, with its options at hand.

    python examples/merge_queue.py            # 3,000 changes, 4 workers, 24 of them killed
    python examples/merge_queue.py 600 2 5    # 600 changes, 2 workers, 5 of them killed

What a worker does with a message is in `batchstate/cli/demo/worker.py`, and fits on a page.
"""

from __future__ import annotations

import sys

from batchstate.cli.demo import run_demo

if __name__ == "__main__":
    changes, workers, kills = [int(word) for word in sys.argv[1:]] or (3000, 4, 24)
    sys.exit(run_demo(changes=changes, workers=workers, kills=kills))
