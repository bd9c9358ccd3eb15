"""WebVerdict as an installed package. Its parts are folders here, and find each other by the names of the checkout."""
