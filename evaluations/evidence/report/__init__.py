"""The HTML report of a bundle. The verifier does not need it: `verify_bundle` renders it again and compares."""
