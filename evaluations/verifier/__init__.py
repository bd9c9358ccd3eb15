"""Checking an evidence bundle with nothing but Python's standard library, 3.10 or newer.

`checking` says what is checked and in which module. `evaluations.evidence.verification` puts these modules, word for
word, into one file, the ``verify.py`` of every bundle. So a module here imports only the standard library and its
neighbours, by ``from evaluations.verifier.x import y`` or ``from evaluations.verifier import x``.
"""
