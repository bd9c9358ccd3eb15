"""Checking an evidence bundle with nothing but Python's standard library.

These modules become one file, ``verify.py``, in every bundle (`evaluations.evidence.single_file`), so that anybody can
check a bundle offline. Therefore a module here imports the standard library by ``import x`` or ``from x import y``, its
neighbours only by ``from evaluations.verifier.x import y`` without ``as``, and no two modules have a top-level name in
common. It runs on Python 3.10 and newer.
"""
