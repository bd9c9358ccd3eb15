"""Addresses of the pages."""

from django.contrib.auth.views import LogoutView
from django.urls import path, register_converter

from annotation.screenshots import Rendition
from annotation.views import (
    account,
    adjudicator,
    annotator,
    catalogue,
    maintainer,
    oversight,
    pictures,
    practice,
    redacting,
    viewer,
)


class RenditionConverter:
    regex = "|".join(Rendition)

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return str(value)


register_converter(RenditionConverter, "rendition")

urlpatterns = [
    path("", account.start, name="start"),
    path("home", account.home, name="home"),
    path("sign-in", account.SignIn.as_view(), name="sign-in"),
    path("sign-out", LogoutView.as_view(), name="sign-out"),
    path("forgotten-password", account.forgotten_password, name="forgotten-password"),
    path("session", account.session, name="session"),
    path("join/<uidb64>/<token>", account.Join.as_view(), name="join"),
    path("account", account.account, name="account"),
    path("account/password", account.change_password, name="password"),
    path("account/data", account.own_data, name="own-data"),
    path("account/erase", account.erasing, name="erasing"),
    path("account/erase/now", account.erase, name="erase-account"),
    path("account/sign-out-everywhere", account.sign_out_everywhere, name="sign-out-everywhere"),
    path("account/tokens", account.make_token, name="make-token"),
    path("account/tokens/<int:pk>/revoke", account.revoke_token, name="revoke-token"),
    path("account/phrases", account.add_phrase, name="add-phrase"),
    path("account/phrases/<int:pk>/delete", account.delete_phrase, name="delete-phrase"),
    path("operator", account.operator, name="operator"),
    path("guidelines", annotator.guidelines, name="guidelines"),
    path("work/<int:pk>", annotator.work, name="work"),
    path("work/<int:pk>/next", annotator.next_trajectory, name="next-trajectory"),
    path("trajectories/<int:pk>", annotator.trajectory, name="trajectory"),
    path("trajectories/<int:pk>/submit", annotator.submit, name="submit"),
    path("trajectories/<int:pk>/draft", annotator.draft, name="draft"),
    path("trajectories/<int:pk>/activity", annotator.activity, name="activity"),
    path("trajectories/<int:pk>/ahead", annotator.ahead, name="ahead"),
    path("trajectories/<int:pk>/hold", annotator.hold, name="hold"),
    path("trajectories/<int:pk>/revise", annotator.revise, name="revise"),
    path("trajectories/<int:pk>/release", annotator.release, name="release"),
    path("trajectories/<int:pk>/flag", annotator.flag, name="flag"),
    path("trajectories/<int:pk>/report", annotator.report, name="report"),
    path("trajectories/<int:pk>/key-points", annotator.propose, name="propose-key-point"),
    path("trajectories/<int:pk>/steps/<int:step>/<rendition:kind>", pictures.picture, name="picture"),
    path("trajectories/<int:pk>/changes", pictures.changes, name="changes"),
    path("trajectories/<int:pk>/search", viewer.search, name="search"),
    path("trajectories/<int:pk>/sheets/<int:number>", pictures.sheet, name="sheet"),
    path("trajectories/<int:pk>/attachments/<int:attachment_pk>", pictures.attachment, name="attachment"),
    path(
        "trajectories/<int:pk>/pages/<int:attachment_pk>/<rendition:kind>", pictures.page_picture, name="page-picture"
    ),
    path("practice/<int:pk>", practice.practice, name="practice"),
    path("practice/<int:pk>/trajectories/<int:trajectory_pk>", practice.practice_desk, name="practice-desk"),
    path("adjudicate/<int:pk>", adjudicator.adjudicate, name="adjudicate"),
    path("adjudicate/<int:pk>/draw", adjudicator.draw, name="draw"),
    path("adjudicate/<int:pk>/next", adjudicator.open_next, name="open-next"),
    path("adjudicate/trajectories/<int:pk>", adjudicator.adjudication, name="adjudication"),
    path("adjudicate/trajectories/<int:pk>/open", adjudicator.open_one, name="open-adjudication"),
    path("adjudicate/trajectories/<int:pk>/decide", adjudicator.decide, name="decide"),
    path("adjudicate/trajectories/<int:pk>/draft", adjudicator.draft, name="adjudication-draft"),
    path("adjudicate/trajectories/<int:pk>/leave", adjudicator.leave, name="leave-adjudication"),
    path("adjudicate/trajectories/<int:pk>/report", adjudicator.report, name="adjudicator-report"),
    path("submissions", maintainer.submissions, name="submissions"),
    path("submissions/upload", catalogue.upload_form, name="upload"),
    path("submissions/upload/package", catalogue.upload, name="upload-package"),
    path("uploads/<uuid:pk>", catalogue.upload_status, name="upload-status"),
    path("uploads/<uuid:pk>/report.json", catalogue.upload_report, name="upload-report"),
    path("submissions/<int:pk>", oversight.submission, name="submission"),
    path("submissions/<int:pk>/draw", maintainer.draw, name="submission-draw"),
    path("submissions/<int:pk>/freeze", maintainer.freeze, name="freeze"),
    path("submissions/<int:pk>/open-results", maintainer.open_results, name="open-results"),
    path("submissions/<int:pk>/reopen", maintainer.reopen_submission, name="reopen-submission"),
    path("submissions/<int:pk>/people", maintainer.people, name="people"),
    path("submissions/<int:pk>/people/add", maintainer.add_person, name="add-person"),
    path("submissions/<int:pk>/people/invite", maintainer.invite, name="invite"),
    path("submissions/<int:pk>/people/<int:person_pk>/invite", maintainer.invite_again, name="invite-again"),
    path("submissions/<int:pk>/people/<int:person_pk>/deactivate", maintainer.deactivate, name="deactivate-person"),
    path("submissions/<int:pk>/people/<int:person_pk>/reactivate", maintainer.reactivate, name="reactivate-person"),
    path("submissions/<int:pk>/events", maintainer.events, name="events"),
    path("submissions/<int:pk>/quality", oversight.annotator_quality, name="quality"),
    path("submissions/<int:pk>/reports", oversight.reports, name="reports"),
    path("reports/<int:pk>/settle", oversight.settle_report, name="settle-report"),
    path("submissions/<int:pk>/settings", oversight.settings, name="submission-settings"),
    path("submissions/<int:pk>/configure", oversight.configure, name="configure"),
    path("submissions/trajectories/<int:pk>", maintainer.trajectory, name="submission-trajectory"),
    path("submissions/trajectories/<int:pk>/reopen", maintainer.reopen_trajectory, name="reopen-trajectory"),
    path("submissions/trajectories/<int:pk>/offer-again", maintainer.offer_again, name="offer-again"),
    path("submissions/trajectories/<int:pk>/known-answer", practice.known_answer, name="known-answer"),
    path("submissions/trajectories/<int:pk>/steps/<int:step>/redaction", redacting.redaction, name="redaction"),
    path("submissions/trajectories/<int:pk>/steps/<int:step>/redact", redacting.redact, name="redact"),
    path(
        "submissions/trajectories/<int:pk>/steps/<int:step>/redacted.png",
        redacting.redacted_picture,
        name="redacted-picture",
    ),
    path("submissions/<int:pk>/redactions", redacting.submission_redactions, name="redactions"),
    path("submissions/<int:pk>/gold", practice.gold, name="gold"),
    path("benchmarks", catalogue.benchmarks, name="benchmarks"),
    path("benchmarks/import", catalogue.import_tasks, name="import-tasks"),
    path("benchmarks/<slug:slug>", catalogue.benchmark, name="benchmark"),
    path("benchmarks/<slug:slug>/labels", catalogue.import_labels, name="import-labels"),
    path("benchmarks/<slug:slug>/tasks/<str:external_id>", catalogue.task, name="task"),
    path("tasks/<int:pk>/key-points", catalogue.add_key_points, name="add-key-points"),
    path("key-points/<int:pk>/accept", catalogue.accept_key_point, name="accept-key-point"),
    path("key-points/<int:pk>/retire", catalogue.retire_key_point, name="retire-key-point"),
]
