"""What the labels amount to: exports today, agreement and comparison on the floor they will share."""
