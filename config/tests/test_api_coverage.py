"""The description of every operation, and that scripts can do what pages can."""

from __future__ import annotations

import re
from typing import Any

from drf_spectacular.generators import SchemaGenerator

from config.tests.addresses import patterns

TAGS = {
    "Account", "Adjudication", "Annotation", "Audits", "Benchmarks", "Discussion", "Entries", "Evidence",
    "Expectations",
    "Judge runs", "Judges", "People", "Results", "Submissions", "Uploads", "Webhooks",
}  # fmt: skip

# The operation that does what a page does, by the name of the page.
COVERED = {
    "join": "join_with_invitation",
    "revoke-token": "revoke_token", "next-trajectory": "take_next_trajectory", "submit": "submit_label",
    "hold": "resume_trajectory", "revise": "revise_label", "put-off": "put_off_trajectory",
    "release": "decline_trajectory", "flag": "flag_trajectory", "report": "report_problem",
    "propose-key-point": "propose_key_point", "practice-desk": "answer_practice_item", "draw": "draw_spot_checks",
    "open-next": "open_next_adjudication", "open-adjudication": "open_adjudication", "decide": "decide_adjudication",
    "answer-flags": "answer_flags", "leave-adjudication": "leave_adjudication",
    "put-off-adjudication": "put_off_adjudication", "adjudicator-report": "report_problem",
    "upload-people": "invite_people", "invitation-links": "create_invitation_links", "upload-package": "upload_package",
    "import-checked": "import_checked_upload", "submission-draw": "draw_spot_checks", "freeze": "freeze_submission",
    "open-results": "open_results", "reopen-submission": "reopen_submission", "archive": "archive_submission",
    "delete-submission": "delete_submission", "restore": "restore_submission", "remind": "remind_members",
    "add-person": "add_member", "invite": "invite_person", "invite-again": "invite_person_again",
    "deactivate-person": "deactivate_member", "reactivate-person": "reactivate_member",
    "settle-report": "settle_report", "ask-question": "ask_question", "answer-question": "answer_question",
    "comment": "write_comment", "delete-comment": "delete_comment", "configure": "change_settings",
    "reopen-trajectory": "reopen_trajectory", "offer-again": "offer_trajectory_again",
    "known-answer": "set_known_answer", "redact": "redact_screenshot", "import-tasks": "import_tasks",
    "archive-benchmark": "archive_benchmark", "delete-benchmark": "delete_benchmark",
    "restore-benchmark": "restore_benchmark", "import-labels": "import_labels", "add-key-points": "add_key_points",
    "accept-key-point": "accept_key_point", "retire-key-point": "retire_key_point", "create-judge": "define_judge",
    "change-judge": "change_judge", "delete-judge": "delete_judge", "test-judge": "test_judge",
    "plan-attack": "plan_judge_robustness", "start-attack": "test_judge_robustness",
    "load-prompts": "load_prompt_set", "save-terms": "set_model_terms", "remove-terms": "remove_model_terms",
    "import-judgments": "import_judgments", "import-expectations": "import_expectations",
    "write-expectation": "write_expectation", "look-network-evidence": "open_network_evidence",
    "look-second-stage": "open_second_stage", "decide-second-stage": "decide_second_stage",
    "plan-judge-run": "plan_judge_run", "start-judge-run": "start_judge_run", "pause-judge-run": "pause_judge_run",
    "resume-judge-run": "resume_judge_run", "cancel-judge-run": "cancel_judge_run",
    "retry-judge-run": "retry_judge_run",
    "create-files": "create_files", "cancel-files": "cancel_files", "open-audit": "upload_bundle",
    "cancel-bundle": "cancel_bundle_upload", "draw-sample": "draw_audit_sample", "decide-audit": "decide_audit",
    "start-upload": "start_resumable_upload", "use-sample-plan": "use_sample_plan", "stop-sampling": "stop_sampling",
    "add-submission-webhook": "create_webhook", "add-benchmark-webhook": "create_webhook",
    "change-webhook": "change_webhook", "switch-webhook": "change_webhook", "rotate-webhook": "rotate_webhook_secret",
    "test-webhook": "test_webhook", "delete-webhook": "delete_webhook", "replay-webhook": "replay_webhook_delivery",
    "start-alignment": "start_alignment", "resume-alignment": "resume_alignment",
    "cancel-alignment": "cancel_alignment", "look-at-test": "look_at_test",
    "mark-disagreements": "mark_disagreements", "add-criterion": "add_criterion",
    "archive-audit": "archive_audit", "restore-audit": "restore_audit", "add-auditor": "add_auditor",
    "submit-entry": "submit_entry", "entry-action": "act_on_entry", "save-intake": "save_intake",
    "add-owner": "add_owner", "remove-owner": "remove_owner",
}  # fmt: skip

SIGN_IN = "Signing in, passwords, second factors and identities need a person at a browser."
ACCOUNT = "A stolen token must not change the account, or create another token."
DESK = "Only the desk in a browser has drafts, measured time, phrases, images ahead and a time to undo."
NOT_COVERED = {
    **dict.fromkeys(
        (
            "sign-in", "mfa_authenticate", "provider-sign-in", "sign-in-once", "sign-out", "forgotten-password",
            "new-password", "password", "activate-totp", "add-passkey", "renew-codes", "remove-factor",
            "link-identity", "end-session", "sign-out-everywhere",
        ),
        SIGN_IN,
    ),
    **dict.fromkeys(("change-address", "choose-mail", "unsubscribe", "erase-account", "make-token"), ACCOUNT),
    **dict.fromkeys(("declare-affiliation", "end-affiliation"), ACCOUNT),
    **dict.fromkeys(
        ("add-phrase", "delete-phrase", "draft", "adjudication-draft", "activity", "ahead", "undo-submit"), DESK
    ),
    "preview-expectation": "It changes nothing; write_expectation lists every problem.",
    "try-expectation": "It changes nothing; test_judge tries stored checks.",
}  # fmt: skip


def get_operations() -> list[tuple[str, dict[str, Any]]]:
    paths = SchemaGenerator().get_schema(public=True)["paths"]
    return [(f"{method} {path}", each) for path, methods in paths.items() for method, each in methods.items()]


def test_every_operation_is_described() -> None:
    operations = get_operations()
    ids = [each["operationId"] for _, each in operations]
    assert len(ids) == len(set(ids)) > 120
    assert [name for name in ids if not re.fullmatch(r"[a-z]+(_[a-z]+)+", name)] == []
    assert {tag for _, each in operations for tag in each["tags"]} == TAGS
    assert [name for name, each in operations if len(each["tags"]) != 1 or not each.get("description")] == []
    undescribed = [
        (name, parameter["name"])
        for name, each in operations
        for parameter in each.get("parameters", [])
        if parameter["in"] == "path" and not parameter.get("description")
    ]
    assert undescribed == []


def test_every_download_states_its_media_type() -> None:
    downloads = {name: each for name, each in get_operations() if each["operationId"].startswith("download_")}
    assert len(downloads) == 7
    for name, each in downloads.items():
        content = each["responses"]["200"]["content"]
        assert set(content) - {"application/json"}, name


def methods_of(view: Any) -> set[str]:
    """Return the methods that a page accepts, from the decorators that refuse the others; empty if it has none."""
    found: set[str] = set()
    while view is not None:
        for name, cell in (
            zip(view.__code__.co_freevars, view.__closure__ or (), strict=True) if hasattr(view, "__code__") else ()
        ):
            if name == "request_method_list":
                found |= set(cell.cell_contents)
        view = getattr(view, "__wrapped__", None)
    return found


def changing_pages() -> set[str]:
    own = ("annotation.", "judges.", "evaluations.")
    names = set()
    for route, name, entry in patterns():
        callback: Any = entry.callback
        if route.startswith(("api/", "admin/")) or hasattr(callback, "cls") or not callback.__module__.startswith(own):
            continue
        methods = methods_of(callback)
        if not methods or "POST" in methods:
            names.add(name)
    return names


def test_every_page_that_changes_something_has_an_operation_or_a_reason() -> None:
    pages = changing_pages()
    known = {each["operationId"] for _, each in get_operations()}
    assert "freeze" in pages
    assert "submission" not in pages
    assert pages - set(COVERED) - set(NOT_COVERED) == set()
    assert set(COVERED.values()) - known == set()
    assert (set(COVERED) | set(NOT_COVERED)) - pages == set()  # nothing that no longer exists
    assert set(COVERED) & set(NOT_COVERED) == set()
