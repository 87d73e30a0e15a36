"""The claim half: jobs are claimed together, locked together and settled apart."""
