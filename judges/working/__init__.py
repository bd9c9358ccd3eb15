"""The worker of judge runs: leases on items, the log of calls, and shared limits."""
