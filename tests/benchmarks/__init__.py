"""Benchmarks: ours against a floor, the same work written by hand on the bare client, interleaved in one run.

    .venv/bin/python -m tests.benchmarks                 # all that this machine has the servers for
    .venv/bin/python -m tests.benchmarks sqlite memory   # those that have one of these words in their name

They report medians and ratios. A ratio of 0.8 means that ours takes 1.25 times as long as the floor. CPU ratios
are of the processor's time, of this process and of a Redis or Valkey server; those of DynamoDB leave the server out.
"""
