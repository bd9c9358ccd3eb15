"""What the agent did, and what people say about it."""
