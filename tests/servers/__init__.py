"""Real servers for tests and benchmarks: started on free ports, gone when the run is gone."""
