"""A worker as a program: works a queue's jobs off and notes in a log what it holds, to the end or until it is killed.

Usage: worker.py URL QUEUE LOG MODE LEASE LIMIT

`drain` works everything off. `halt` claims once, settles the first twenty jobs, notes `halted` and waits to be killed.
Each line of the log is written in one step: what happened, the job, the claim, the process, and a time that all
processes of a machine share.
"""

from __future__ import annotations

import os
import random
import sys
import time

from batchstate import Done, JobPolicy, open_queue

HALTED_AFTER = 20


def main(url: str, name: str, log: str, mode: str, lease: str, limit: str) -> None:
    """Work."""
    lines = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(what: str, job: str, claim: str) -> None:
        os.write(lines, f"{what} {job} {claim} {os.getpid()} {time.monotonic_ns()}\n".encode())

    with open_queue(name, url, policy=JobPolicy(max_stalls=5), by=f"worker-{os.getpid()}") as q:
        while q.counts().waiting + q.counts().active + q.counts().scheduled:
            claim = q.claim(int(limit), lease=lease)
            if claim is None:
                q.sweep()
                time.sleep(0.02)
                continue
            for job in claim:
                note("held", job.id, claim.id)
            if mode == "halt":
                for job in claim.jobs[:HALTED_AFTER]:
                    claim.settle({job.id: Done()})
                note("halted", "-", claim.id)
                time.sleep(600)
            with claim:
                for job in claim:
                    time.sleep(random.uniform(0, 0.01))
                    with claim.attempt(job):
                        note("worked", job.id, claim.id)
                for job in claim:
                    note("done", job.id, claim.id)


if __name__ == "__main__":
    main(*sys.argv[1:])
