"""What machines say about a trajectory; judges come with their engine, one scorer a module in `scorers`."""
