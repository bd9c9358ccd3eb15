"""Write docs/reference from the code. config/tests/test_reference.py compares the two."""
