"""What a worker stands on: the items that it holds, what it asks and keeps, and the limits that it shares."""
