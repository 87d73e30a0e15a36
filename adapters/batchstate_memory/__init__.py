"""The in-memory backend: for tests and notebooks, with the full contract and no kindness that the others lack.

All that is stored is immutable text and numbers, encoded on the way in and decoded on the way out,
so nothing that is handed in or out is shared with the store. One lock makes every method one step.
"""

from batchstate_memory.storage import MemoryStorage
from batchstate_memory.store import MemoryStore

__all__ = ["MemoryStorage", "MemoryStore"]
