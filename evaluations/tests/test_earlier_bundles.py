"""Bundles that earlier versions wrote still verify and can still be audited.

`earlier_bundles/` holds bundles as each version wrote them; they are never written again. A bundle is named after the
version, the review (`busy_review`, `whole_review`) and the kind of its screenshots.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluations.auditing.importing import open_bundle
from evaluations.evidence.verification import verify_bundle
from evaluations.tests.audited import auditor
from evaluations.verifier.checking import Given
from evaluations.verifier.findings import Result

BUNDLES = sorted((Path(__file__).parent / "earlier_bundles").glob("*.zip"))


def test_earlier_bundles_exist() -> None:
    assert len(BUNDLES) >= 2


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.stem)
def test_an_earlier_bundle_verifies(path: Path) -> None:
    outcome = verify_bundle(str(path), Given())
    assert [(finding.name, finding.says) for finding in outcome.findings if finding.result is Result.FAIL] == []
    assert {"manifest", "shapes", "agreement", "chain", "final_verdicts"} <= {
        finding.name for finding in outcome.findings if finding.result is Result.PASS
    }


@pytest.mark.django_db
@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.stem)
def test_an_earlier_bundle_opens_as_an_audit(path: Path) -> None:
    assert open_bundle(path, auditor()).submission.trajectories.count() >= 6
