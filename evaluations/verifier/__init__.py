"""Verifier of evidence bundles that needs only Python 3.10 or newer and its standard library.

`checking` lists all checks and their modules. `evaluations.evidence.verification` copies these modules unchanged into
one file, the ``verify.py`` of every bundle. So a module here imports only the standard library and modules of this
package, by ``from evaluations.verifier.x import y`` or ``from evaluations.verifier import x``.
"""
