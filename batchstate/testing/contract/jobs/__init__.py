"""The contract of a storage that keeps jobs, one module a subject; `JobContract` inherits them all."""

from batchstate.testing.contract.jobs.adding import Adding
from batchstate.testing.contract.jobs.claiming import Claiming
from batchstate.testing.contract.jobs.consuming import Consuming
from batchstate.testing.contract.jobs.delaying import Delaying
from batchstate.testing.contract.jobs.driven import Driven
from batchstate.testing.contract.jobs.endings import Endings, Walking
from batchstate.testing.contract.jobs.groups import Groups
from batchstate.testing.contract.jobs.handling import Bisecting, Handling
from batchstate.testing.contract.jobs.holding import Holding
from batchstate.testing.contract.jobs.keeping import Purging, Removing, Reviving
from batchstate.testing.contract.jobs.late import LateSettling
from batchstate.testing.contract.jobs.leases import Leases
from batchstate.testing.contract.jobs.limits import Ceilings, Pausing
from batchstate.testing.contract.jobs.looking import Looking
from batchstate.testing.contract.jobs.many import Many
from batchstate.testing.contract.jobs.racing import Racing
from batchstate.testing.contract.jobs.replays import Replays
from batchstate.testing.contract.jobs.restoring import Restoring
from batchstate.testing.contract.jobs.settling import Settling
from batchstate.testing.contract.jobs.stalls import Stalls
from batchstate.testing.contract.jobs.using import Using

__all__ = ["JobContract"]


class JobContract(
    Adding,
    Bisecting,
    Ceilings,
    Claiming,
    Consuming,
    Delaying,
    Driven,
    Endings,
    Groups,
    Handling,
    Holding,
    LateSettling,
    Leases,
    Looking,
    Many,
    Pausing,
    Purging,
    Racing,
    Removing,
    Replays,
    Restoring,
    Reviving,
    Settling,
    Stalls,
    Using,
    Walking,
):
    """Every promise of `batchstate.job_storage.JobStorage` and of the claim half over it, for one adapter.

    Inherit it in a class whose name begins with `Test` and give the fixture `harness`, the same as for
    `StorageContract`. An adapter that keeps no jobs leaves it out.
    """
