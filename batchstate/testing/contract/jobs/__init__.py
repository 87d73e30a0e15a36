"""The contract of a storage that keeps jobs, one module a subject; `JobContract` inherits them all."""

from batchstate.testing.contract.jobs.adding import Adding
from batchstate.testing.contract.jobs.claiming import Claiming
from batchstate.testing.contract.jobs.delaying import Delaying
from batchstate.testing.contract.jobs.late import LateSettling
from batchstate.testing.contract.jobs.replays import Replays
from batchstate.testing.contract.jobs.settling import Settling

__all__ = ["JobContract"]


class JobContract(
    Adding,
    Claiming,
    Delaying,
    LateSettling,
    Replays,
    Settling,
):
    """Every promise of `batchstate.job_storage.JobStorage` and of the claim half over it, for one adapter.

    Inherit it in a class whose name begins with `Test` and give the fixture `harness`, the same as for
    `StorageContract`. An adapter that keeps no jobs leaves it out.
    """
