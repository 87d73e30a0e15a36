"""batchstate: batches that move through a lifecycle, on workers that crash, repeat and race."""
