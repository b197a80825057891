"""From a trace of requests to the classes of a workload."""
