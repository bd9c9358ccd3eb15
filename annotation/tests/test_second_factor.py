"""The second factor: codes are computed as an app computes them, and each works once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from axes.models import AccessAttempt
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from annotation import privacy, second_factor
from annotation.models import ApiToken, Event, Person
from annotation.tests import oidc, testing
from annotation.tests.test_single_sign_on import link, provider, user_of  # noqa: F401

pytestmark = pytest.mark.django_db
NOW = 1_800_000_000


class Clock:
    now = NOW

    @staticmethod
    def time():
        return Clock.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(totp, "time", Clock)
    Clock.now = NOW
    return Clock


def code_of(secret, at=None):
    """RFC 6238, on its own: the test shares no code with the program."""
    counter = (Clock.now if at is None else at) // 30
    digest = hmac.new(base64.b32decode(secret), struct.pack(">Q", counter), hashlib.sha1).digest()
    start = digest[-1] & 15
    return f"{(int.from_bytes(digest[start : start + 4], 'big') & 0x7FFFFFFF) % 1_000_000:06d}"


def test_the_codes_of_the_test_are_those_of_the_standard():
    secret = base64.b32encode(b"12345678901234567890").decode()
    assert [code_of(secret, at) for at in (59, 1111111109, 20000000000)] == ["287082", "081804", "353130"]


def sign_in(client, name="alice"):
    return client.post(reverse("sign-in"), {"username": name, "password": testing.PASSWORD, "next": reverse("account")})


def set_up(client, name="alice"):
    """Sign in and set up an app; return its secret and the recovery codes. The next code is due in the next step."""
    sign_in(client, name)
    secret = client.get(reverse("second-factor")).context["secret"]
    done = client.post(reverse("activate-totp"), {"code": code_of(secret)})
    Clock.now += 60
    return secret, done.context["codes"]


def enter(client, code):
    return client.post(reverse("mfa_authenticate"), {"code": code})


def test_a_person_sets_up_an_app_and_then_signs_in_with_its_codes(client, people):
    secret, codes = set_up(client)
    assert len(set(codes)) == 10
    other = Client()

    answer = sign_in(other)
    assert (answer["Location"], user_of(other).is_authenticated) == (reverse("mfa_authenticate"), False)
    assert other.get(reverse("account")).status_code == 302
    answer = enter(other, code_of(secret))

    assert (answer["Location"], user_of(other)) == (reverse("account"), people["alice"])


def test_a_code_works_once_and_the_codes_before_it_no_more(client, people):
    secret, _ = set_up(client)
    Clock.now += 60
    statuses = []
    for seconds in (0, -30, 0, 30):
        sign_in(other := Client())
        statuses.append(enter(other, code_of(secret, Clock.now + seconds)).status_code)
    assert statuses == [302, 400, 400, 302]


def test_the_code_of_the_set_up_does_not_sign_in(client, people):
    secret, _ = set_up(client)
    other = Client()
    sign_in(other)
    assert enter(other, code_of(secret, NOW)).status_code == 400


@pytest.mark.parametrize(("seconds", "status"), [(-90, 400), (-30, 302), (30, 302), (90, 400)])
def test_a_clock_may_be_half_a_minute_wrong(client, people, seconds, status):
    secret, _ = set_up(client)
    Clock.now += 300
    sign_in(other := Client())
    assert enter(other, code_of(secret, Clock.now + seconds)).status_code == status


@pytest.mark.parametrize("code", ["", "000000", "١٢٣٤٥٦", "x" * 5000, "-1"])
def test_wrong_codes_are_refused_with_what_to_do(client, people, code):
    set_up(client)
    sign_in(other := Client())
    answer = enter(other, code)
    assert (answer.status_code, "Wrong code" in answer.content.decode()) == (400, True)


def test_guessing_codes_is_limited_as_guessing_passwords_is(client, people, settings):
    secret, _ = set_up(client)
    sign_in(other := Client())
    statuses = [enter(other, "000000").status_code for _ in range(settings.AXES_FAILURE_LIMIT)]
    assert statuses[-1] == 429
    assert enter(other, code_of(secret)).status_code == 429
    assert "000000" not in str(AccessAttempt.objects.values())


def test_a_recovery_code_works_once(client, people):
    _, codes = set_up(client)
    for status in (302, 400):
        sign_in(other := Client())
        assert enter(other, codes[3]).status_code == status


def test_new_recovery_codes_replace_the_old_ones(client, people):
    _, codes = set_up(client)
    new = client.post(reverse("renew-codes")).context["codes"]
    for code, status in ((codes[0], 400), (new[0], 302)):
        sign_in(other := Client())
        assert enter(other, code).status_code == status


@pytest.mark.django_db(transaction=True)
def test_one_code_at_two_places_at_once_opens_one_session(tmp_path):
    testing.cast(testing.submission(tmp_path / "package", trajectories=1))
    secret, _ = set_up(Client())
    clients = [Client(), Client()]
    for each in clients:
        sign_in(each)

    def take(each):
        try:
            return enter(each, code_of(secret)).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(take, clients)) == [302, 400]


def test_setting_up_ends_the_other_sessions(client, people):
    sign_in(other := Client())
    set_up(client)
    assert not user_of(other).is_authenticated
    assert user_of(client).is_authenticated


def test_single_sign_on_needs_the_factor_too(client, people, provider):  # noqa: F811
    secret, _ = set_up(client)
    link(people["alice"], provider)
    other = Client()
    assert oidc.sign_in(other, provider, "sub-1")["Location"] == reverse("mfa_authenticate")
    assert not user_of(other).is_authenticated
    enter(other, code_of(secret))
    assert user_of(other) == people["alice"]


def test_a_link_for_a_new_password_needs_the_factor_too(client, people, submission):
    set_up(client)
    operator = Client()
    operator.force_login(Person.objects.create_superuser("root"))
    address = operator.post(reverse("invite-again", args=[submission.pk, people["alice"].pk])).context["link"]
    page = (other := Client()).get(address, follow=True)
    new = {"new_password1": "a long walk home", "new_password2": "a long walk home"}
    assert other.post(page.request["PATH_INFO"], new)["Location"] == reverse("mfa_authenticate")
    assert not user_of(other).is_authenticated


def test_factors_can_be_changed_soon_after_a_sign_in_only(client, people):
    client.force_login(people["alice"])  # a session without the time of its sign-in
    assert client.get(reverse("second-factor")).status_code == 403
    assert client.post(reverse("activate-totp"), {"code": "1"}).status_code == 403
    assert client.post(reverse("remove-factor")).status_code == 403


# --- required ---------------------------------------------------------------------------------------------------------


def test_an_operator_without_a_factor_can_do_nothing_else(client, people, settings):
    settings.REQUIRE_MFA = "operators"
    Person.objects.filter(username="mira").update(is_superuser=True)
    sign_in(client, "mira")

    for name in ("home", "operator", "account", "admin:index", "own-data"):
        assert client.get(reverse(name))["Location"] == reverse("second-factor"), name
    made = client.post(reverse("make-token"), {"name": "x", "scope": "read", "days": "9"})
    assert (made["Location"], ApiToken.objects.count()) == (reverse("second-factor"), 0)
    assert client.get("/api/v1/submissions").status_code == 403
    set_up(client, "mira")
    assert client.get(reverse("operator")).status_code == 200


def test_a_token_needs_no_second_factor(client, people, settings):
    settings.REQUIRE_MFA = "maintainers"
    token = ApiToken.issue(people["mira"], "script", "read")[1]
    assert client.get("/api/v1/submissions", headers={"Authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.parametrize(
    ("setting", "maintainer", "annotator"),
    [("off", 200, 200), ("operators", 200, 200), ("maintainers", 302, 200), ("everybody", 302, 302)],
)
def test_the_setting_says_who_needs_one(client, people, settings, setting, maintainer, annotator):
    settings.REQUIRE_MFA = setting
    sign_in(client, "mira")
    assert client.get(reverse("home")).status_code == maintainer
    sign_in(other := Client(), "alice")
    assert other.get(reverse("home")).status_code == annotator


def test_secrets_and_recovery_codes_are_long_and_never_the_same(client, people):
    secrets, codes = zip(*(set_up(Client(), name) for name in ("alice", "bob")), strict=True)
    assert len(set(secrets)) == 2
    assert min(len(base64.b32decode(secret)) for secret in secrets) >= 20
    everything = [*codes[0], *codes[1]]
    assert len(set(everything)) == len(everything) == 20
    assert all(len(code) >= 8 and code.isdigit() for code in everything)  # 26 bits


def test_a_session_that_is_older_than_the_requirement_ends(client, people, settings):
    set_up(Client(), "mira")
    client.force_login(people["mira"])
    settings.REQUIRE_MFA = "maintainers"
    assert client.get(reverse("home"))["Location"].startswith(reverse("sign-in"))
    assert not user_of(client).is_authenticated


@pytest.mark.parametrize("name", ["second-factor", "activate-totp", "add-passkey", "renew-codes", "remove-factor"])
@pytest.mark.parametrize("required", ["off", "maintainers"])
def test_a_session_without_the_factor_changes_no_factor(client, people, settings, name, required):
    set_up(Client(), "mira")
    factors = list(Authenticator.objects.order_by("pk").values())
    settings.REQUIRE_MFA = required
    client.force_login(people["mira"])
    answer = client.post(reverse(name), {"code": "123456"})
    assert answer["Location"].startswith(reverse("sign-in"))
    assert not user_of(client).is_authenticated
    assert list(Authenticator.objects.order_by("pk").values()) == factors


def test_a_person_who_must_have_a_factor_only_replaces_it(client, people, settings):
    settings.REQUIRE_MFA = "maintainers"
    set_up(client, "mira")
    client.post(reverse("remove-factor"))
    assert client.get(reverse("home"))["Location"] == reverse("second-factor")


# --- data -------------------------------------------------------------------------------------------------------------


def test_the_database_and_the_export_have_no_secret(client, people):
    secret, _ = set_up(client)
    assert secret not in str(Authenticator.objects.values())
    exported = privacy.data_of(people["alice"])
    assert "'type': 'totp'" in str(exported)
    assert not any(
        row.data[key] in str(exported)
        for row in Authenticator.objects.all()
        for key in ("secret", "seed")
        if key in row.data
    )


def test_a_former_secret_key_still_opens_the_factor_and_a_lost_one_does_not(client, people, settings):
    secret, _ = set_up(client)
    row = Authenticator.objects.get(type="totp")
    former = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another " * 9, [former]
    assert second_factor.decrypt(row.data["secret"]) == secret
    settings.SECRET_KEY_FALLBACKS = []
    assert second_factor.take_code(people["alice"], code_of(secret)) is None


def test_the_command_deletes_a_lost_factor_and_records_it(client, people, capsys):
    set_up(client)
    ApiToken.issue(people["alice"], "laptop", "read")
    call_command("reset_second_factor", "alice")
    assert not user_of(client).is_authenticated
    assert not ApiToken.objects.filter(revoked_at=None).exists()
    assert sign_in(Client())["Location"] == reverse("account")
    assert Event.objects.get(kind="account_changed").payload == {
        "person": people["alice"].pk,
        "fields": ["second_factor"],
    }
    with pytest.raises(CommandError, match="no second factor"):
        call_command("reset_second_factor", "alice")


def test_a_reset_while_the_person_sets_a_factor_up_leaves_none(client, people, monkeypatch):
    """The session may be on a stolen device: what it does at the same moment must not outlive the reset."""

    class Reset(Clock):
        @staticmethod
        def time():
            call_command("reset_second_factor", "alice")
            return Clock.now

    set_up(client)
    session = client.session
    secret = session[totp.SECRET_SESSION_KEY] = totp.generate_totp_secret()
    session.save()
    monkeypatch.setattr(totp, "time", Reset)

    assert client.post(reverse("activate-totp"), {"code": code_of(secret)}).status_code == 403
    assert not Authenticator.objects.exists()
    assert not user_of(client).is_authenticated


def test_a_reset_while_the_person_renews_the_codes_leaves_none(client, people, monkeypatch):
    def reset(person):
        call_command("reset_second_factor", "alice")
        return True

    set_up(client)
    monkeypatch.setattr(second_factor, "has_factor", reset)

    assert client.post(reverse("renew-codes")).status_code == 403
    assert not Authenticator.objects.exists()


@pytest.mark.parametrize(
    ("host", "advice"),
    [
        ("localhost:8000", None),
        ("127.0.0.1:8000", "at http://localhost:8000 and"),
        ("[::1]", "at http://localhost and"),
        ("10.0.0.7", "by its host name and"),
    ],
)
def test_passkeys_are_explained_at_an_ip_address_which_browsers_refuse(client, people, settings, host, advice):
    settings.ALLOWED_HOSTS = ["*"]
    sign_in(client)
    page = client.get(reverse("second-factor"), headers={"Host": host}).content.decode()
    assert ("data-passkey" in page) is (advice is None)
    assert advice is None or f"Open this site {advice} sign in again." in page
