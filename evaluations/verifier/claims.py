"""All claims about a submission, computed from its documents."""

from __future__ import annotations

from evaluations.verifier.chain import chain_claim
from evaluations.verifier.complete_record import complete_record_claim
from evaluations.verifier.documents import Bundle
from evaluations.verifier.draws import draws_claim, spot_checks_claim
from evaluations.verifier.exceptions import exceptions_claim
from evaluations.verifier.findings import Finding
from evaluations.verifier.order import blind_order_claim, fixed_labels_claim, frozen_claim
from evaluations.verifier.origin import coverage_claim, imported_claim
from evaluations.verifier.people import annotators_claim, roles_claim
from evaluations.verifier.reasons import reasons_claim
from evaluations.verifier.replay import replayed
from evaluations.verifier.times import times_claim
from evaluations.verifier.verdicts import disputes_claim, export_claim, final_verdicts_claim


def claims(bundle: Bundle) -> list[Finding]:
    """One finding for each of `rules.CLAIMS`, in that order. Nothing in the documents makes it fail to answer.

    The rows are held against the rules by themselves, and against the events as they followed each other: who changes
    rows and hashes alike has to invent a course of events in which every rule was kept.
    """
    history = replayed(bundle)
    return [
        coverage_claim(bundle, history),
        annotators_claim(bundle, history),
        roles_claim(bundle, history),
        disputes_claim(bundle, history),
        draws_claim(bundle, history),
        spot_checks_claim(bundle, history),
        blind_order_claim(bundle, history),
        reasons_claim(bundle),
        fixed_labels_claim(bundle, history),
        final_verdicts_claim(bundle, history),
        export_claim(bundle, history),
        imported_claim(bundle, history),
        complete_record_claim(bundle, history),
        chain_claim(bundle),
        frozen_claim(bundle, history),
        times_claim(bundle),
        exceptions_claim(bundle, history),
    ]
