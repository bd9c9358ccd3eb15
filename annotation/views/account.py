"""Sign-in, account, own data and its erasure, and the start page."""

from __future__ import annotations

import math
from typing import Any, cast

from axes.helpers import get_cool_off
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm, SetPasswordForm
from django.contrib.auth.views import INTERNAL_RESET_SESSION_TOKEN, LoginView, LogoutView, PasswordResetConfirmView
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.generic import TemplateView

from annotation import (
    access,
    jobs,
    mail,
    parked,
    password_limits,
    privacy,
    sign_in_flow,
    sign_ins,
    single_sign_on,
    workflow,
)
from annotation.account_forms import (
    AddressForm,
    AffiliationForm,
    ForgottenPasswordForm,
    MailForm,
    OwnPasswordForm,
    PhraseForm,
    TokenForm,
)
from annotation.forms import HoursForm
from annotation.models import Affiliation, ApiToken, Membership, MessageKind, Person
from annotation.models.people import MOST_TOKENS, PasswordWay
from annotation.views.answers import Request, act, act_from, is_scripted, page, paginate
from annotation.work import START
from annotation.workflow import passwords

MOST_SIGN_INS = 10  # on the account page; *Download my data* has all
CHANGED = "The e-mail address of your account was changed. If you did not change it, contact the operator of this site."
TOO_OLD = "Your sign-in is too old. Nothing was erased. Sign out, then sign in again."
MOST_AFFILIATIONS = 50  # of one person, including ended ones
MOST_PHRASES = 50  # of one person: a menu cannot show more


class SignIn(LoginView):
    template_name = "registration/sign_in.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        _require_local_sign_in()
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        return sign_in_flow.sign_in(self.request, form.get_user(), "password", self.get_success_url())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | _ways_to_sign_in()


class SignOut(LogoutView):
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _clear_cache(super().post(request, *args, **kwargs))


def _clear_cache(response: HttpResponse) -> HttpResponse:
    """Let the browser delete screenshots, which it may otherwise keep for a year."""
    response["Clear-Site-Data"] = '"cache"'
    return response


@require_POST
@never_cache
def sign_in_at_provider(request: HttpRequest) -> HttpResponse:
    _require_provider()
    wanted = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return single_sign_on.redirect_to_provider(request, wanted if ours else "")


@require_safe
@never_cache
def provider_callback(request: HttpRequest) -> HttpResponse:
    _require_provider()
    if any("\x00" in value for value in request.GET.values()):
        raise BadRequest("Remove the NUL character.")
    return single_sign_on.complete(request)


class SignInOnce(TemplateView):
    """Sign-in of an operator with a link that the command `sign_in_link` printed."""

    template_name = "registration/sign_in_once.html"

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        person = sign_in_flow.take_link(token)
        if person is None:
            return render(request, "registration/sign_in_once.html", {"used": True}, status=403)
        return sign_in_flow.sign_in(request, person, "link")


class Join(PasswordResetConfirmView):
    """Link of an invitation or for a forgotten password: the visitor sets the password and is signed in."""

    way = PasswordWay.LINK
    template_name = "registration/join.html"
    success_url = reverse_lazy("start")

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        person = cast(Person, self.user)
        if "provider" in request.POST and settings.OIDC_ISSUER and not passwords.has_joined(person):
            token = request.session[INTERNAL_RESET_SESSION_TOKEN]
            return single_sign_on.redirect_to_provider(request, invitation=[person.pk, token])
        _require_local_sign_in()
        return super().post(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs) | _ways_to_sign_in()
        return context | {"joining": self.validlink and not passwords.has_joined(cast(Person, self.user))}

    def form_valid(self, form: SetPasswordForm) -> HttpResponse:
        person = cast(Person, form.user)
        person.password_way = self.way if passwords.has_joined(person) else PasswordWay.FIRST
        response = cast(HttpResponseRedirect, super().form_valid(form))
        return sign_in_flow.sign_in(self.request, person, "link", response.url)


class NewPassword(Join):
    """Link in an e-mail for a forgotten password."""

    way = PasswordWay.MAIL
    token_generator = passwords.mail_token_generator


def _ways_to_sign_in() -> dict[str, Any]:
    return {"provider": settings.OIDC_ISSUER and settings.OIDC_NAME, "local": settings.LOCAL_SIGN_IN}


def _require_provider() -> None:
    if not settings.OIDC_ISSUER:
        raise Http404("This instance has no single sign-on.")


def _require_local_sign_in() -> None:
    if not settings.LOCAL_SIGN_IN:
        raise PermissionDenied("Passwords are switched off on this site. Use single sign-on.")


def locked_out(request: HttpRequest, response: Any = None, credentials: Any = None) -> HttpResponse:
    """Return 429 after too many failed sign-ins (setting AXES_LOCKOUT_CALLABLE)."""
    cool_off = get_cool_off(request)
    seconds = int(cool_off.total_seconds()) if cool_off else 0
    answer = render(request, "429.html", {"minutes": math.ceil(seconds / 60)}, status=429)
    if seconds:
        answer["Retry-After"] = str(seconds)
    return answer


@page
def start(request: Request) -> HttpResponse:
    """Redirect to the person's only submission, or to a list if there are several or none."""
    memberships = list(access.memberships_of(request.user)[:2])
    if len(memberships) == 1:
        return redirect(START[Membership.Role(memberships[0].role)], memberships[0].submission_id)
    if not memberships and access.may_create_submissions(request.user):
        return redirect("submissions")
    return redirect("home")


@page
def account(request: Request) -> HttpResponse:
    return _account(request)


@act
def link_identity(request: Request) -> HttpResponse:
    """Link the person's identity at the provider; the password proves that it is not somebody at an unlocked screen."""
    _require_provider()
    if not sign_in_flow.confirms_identity(request, request.POST.get("password", "")):
        return _account(request, identity_problem="Wrong password. Nothing was linked.", status=400)
    return single_sign_on.redirect_to_provider(request, link=request.user.pk)


@act
def change_password(request: Request) -> HttpResponse:
    _require_local_sign_in()
    form = OwnPasswordForm(request, request.POST)
    if not form.is_valid():
        return _account(request, password_form=form, status=400)
    update_session_auth_hash(request, form.save())
    messages.success(request, "Password changed. All other browsers were signed out. Your API tokens were revoked.")
    response = redirect("account")
    password_limits.remember_browser(response, request.user)
    return response


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def forgotten_password(request: HttpRequest) -> HttpResponse:
    """Let a job send a link. The response does not depend on whether the account exists, nor does its time.

    An instance without e-mail explains how to get a link.
    """
    _require_local_sign_in()
    form = ForgottenPasswordForm(request.POST or None)
    context = {"days": settings.PASSWORD_RESET_TIMEOUT // 86_400, "form": form, "sends": bool(settings.EMAIL_HOST)}
    if request.method == "POST" and settings.EMAIL_HOST:
        if "\x00" in request.POST.get("username", ""):
            raise BadRequest("Remove the NUL character.")
        if not form.is_valid():
            return render(request, "registration/forgotten_password.html", context, status=400)
        if not password_limits.count_link_request(request):
            return locked_out(request)
        try:
            jobs.write_password_links.delay(mail.find_accounts(form.cleaned_data["username"]))
        except jobs.BROKER_ERRORS:
            return render(request, "registration/forgotten_password.html", context | {"failed": True}, status=503)
        context["requested"] = True
    return render(request, "registration/forgotten_password.html", context)


@act
def change_address(request: Request) -> HttpResponse:
    """Change the person's e-mail address, and tell the old one."""
    form = AddressForm(request, request.POST)
    if not form.is_valid():
        return _account(request, address_form=form, status=400)
    with transaction.atomic():
        person = workflow.lock_account(request.user)
        old, person.email = person.email, form.cleaned_data["email"]
        person.save(update_fields=["email"])
        if old and old != person.email:
            mail.write(person, MessageKind.ADDRESS, "E-mail address changed", CHANGED, address=old)
    messages.success(request, "E-mail address saved.")
    return redirect("account")


@act
def choose_mail(request: Request) -> HttpResponse:
    form = MailForm(request.POST)
    if not form.is_valid():
        return _account(request, mail_form=form, status=400)
    mail.choose(request.user, form.unwanted)
    messages.success(request, "Choice saved.")
    return redirect("account")


@page
def own_messages(request: Request) -> HttpResponse:
    shown = paginate(request, access.messages_of(request.user), 50)
    return render(request, "annotation/messages.html", {"page": shown, "site": settings.SITE_URL})


@csrf_exempt  # mail programs send this form themselves (RFC 8058); the link is signed
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Ask (GET), then send the person no more e-mail of this group (POST). Needs no sign-in, only the link."""
    found = mail.read_opt_out(token)
    if found is None:
        raise Http404("No such link.")
    person, group = found
    if request.method == "POST":
        mail.choose(person, {*mail.find_unwanted(person), group})
    context = {"group": group.label, "done": request.method == "POST"}
    return render(request, "registration/unsubscribe.html", context)


@never_cache
@require_safe
def session(request: HttpRequest) -> HttpResponse:
    """Return the person who is signed in (null for nobody), with a new token for the forms of an open page."""
    person = request.user.pk if request.user.is_authenticated else None
    return JsonResponse({"person": person, "csrf": get_token(request)})


@act
def sign_out_everywhere(request: Request) -> HttpResponse:
    sign_ins.end_sessions(request.user)
    logout(request)
    messages.success(request, "Signed out in all browsers.")
    return _clear_cache(redirect("sign-in"))


@act
def make_token(request: Request) -> HttpResponse:
    form = TokenForm(request.POST)
    token = _issue_token(request.user, form) if form.is_valid() else None
    if token is None:
        return _account(request, token_form=form, status=400)
    response = _account(request, token=token)
    response["Cache-Control"] = "no-store"
    return response


def _issue_token(person: Person, form: TokenForm) -> str | None:
    with transaction.atomic():
        Person.objects.select_for_update().get(pk=person.pk)
        if sum(token.is_usable for token in access.tokens_of(person)) >= MOST_TOKENS:
            form.add_error(None, f"You have {MOST_TOKENS} tokens. Revoke one that you no longer need.")
            return None
        return ApiToken.issue(person, **form.cleaned_data)[1]


@act
def revoke_token(request: Request, pk: int) -> HttpResponse:
    token = access.token_for(request.user, pk)
    access.tokens_of(request.user).filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())
    messages.success(request, "Token revoked.")
    return redirect("account")


@act
def add_phrase(request: Request) -> HttpResponse:
    """Save a phrase; a script gets all phrases of the person as JSON, with the problem if it was not saved (400)."""
    form = PhraseForm(request.POST)
    if form.is_valid() and not _keep_phrase(request.user, form.cleaned_data["text"]):
        form.add_error("text", f"You have {MOST_PHRASES} phrases. Delete one first.")
    if is_scripted(request):
        return JsonResponse(_phrases(request, form), status=200 if form.is_valid() else 400)
    if not form.is_valid():
        return _account(request, phrase_form=form, status=400)
    messages.success(request, "Phrase saved.")
    return redirect("account")


def _keep_phrase(person: Person, text: str) -> bool:
    """Save the phrase unless it exists; return False if the person has too many."""
    with transaction.atomic():
        Person.objects.select_for_update().get(pk=person.pk)
        own = access.phrases_of(person)
        if not own.filter(text=text).exists() and own.count() >= MOST_PHRASES:
            return False
        own.get_or_create(person=person, text=text)
        return True


def _phrases(request: Request, form: PhraseForm) -> dict[str, Any]:
    texts = list(access.phrases_of(request.user).values_list("text", flat=True))
    return {"phrases": texts, "problem": " ".join(map(str, form.errors.get("text", [])))}


@act
def delete_phrase(request: Request, pk: int) -> HttpResponse:
    access.phrase_for(request.user, pk).delete()
    messages.success(request, "Phrase deleted.")
    return redirect("account")


@act
def declare_affiliation(request: Request) -> HttpResponse:
    form = AffiliationForm(request.POST)
    if not form.is_valid():
        return _account(request, affiliation_form=form, status=400)
    if request.user.affiliations.count() >= MOST_AFFILIATIONS:
        form.add_error("organisation", f"You can declare at most {MOST_AFFILIATIONS} affiliations.")
        return _account(request, affiliation_form=form, status=400)
    Affiliation.objects.create(person=request.user, organisation=form.cleaned_data["organisation"])
    messages.success(request, "Affiliation declared.")
    return redirect("account")


@act
def end_affiliation(request: Request, pk: int) -> HttpResponse:
    found = request.user.affiliations.filter(pk=pk, ended_at=None)
    if not found.update(ended_at=timezone.now()):
        raise Http404("No such affiliation.")
    messages.success(request, "Affiliation ended.")
    return redirect("account")


def _account(request: Request, status: int = 200, **context: Any) -> HttpResponse:
    if "password_form" not in context:
        context["password_form"] = OwnPasswordForm(request)
    context |= _ways_to_sign_in() | {"identity": single_sign_on.identity_of(request.user)}
    context["sessions"] = sign_ins.list_sessions(request)
    context["sign_ins"] = sign_ins.logged_sign_ins().filter(person=request.user)[:MOST_SIGN_INS]
    context["password_changes"] = [
        (event.at, sign_in_flow.WAYS[event.payload["way"]]) for event in passwords.changes_by_others(request.user.pk)
    ]
    context.setdefault("token_form", TokenForm())
    context.setdefault("address_form", AddressForm(request))
    context.setdefault("mail_form", MailForm(unwanted=mail.find_unwanted(request.user)))
    context["sends"] = bool(settings.EMAIL_HOST)
    context.setdefault("phrase_form", PhraseForm())
    context.setdefault("affiliation_form", AffiliationForm())
    context["affiliations"] = request.user.affiliations.all()
    context["hours_form"] = HoursForm() if access.labels_by(request.user).exists() else None
    context["phrases"] = access.phrases_of(request.user)
    context["tokens"] = access.tokens_of(request.user).order_by("revoked_at", "-created_at")
    return render(request, "annotation/account.html", context, status=status)


# --- own data ---------------------------------------------------------------------------------------------------------


@page
def own_data(request: Request) -> HttpResponse:
    data = privacy.data_of(request.user)
    response = JsonResponse(data, json_dumps_params={"indent": 2, "ensure_ascii": False})
    response["Content-Disposition"] = 'attachment; filename="webverdict-my-data.json"'
    return response


@page
def erasing(request: Request) -> HttpResponse:
    """Explain the effects of an erasure before it is confirmed."""
    return _erasing(request)


@act_from("erasing")
def erase(request: Request) -> HttpResponse:
    """Erase the person's own account; the password proves that it is not somebody at an unlocked screen."""
    if not sign_in_flow.confirms_identity(request, request.POST.get("password", "")):
        return _erasing(
            request, "Wrong password. Nothing was erased." if request.user.has_usable_password() else TOO_OLD, 400
        )
    accepted = {name: request.POST.get(name) == "1" for name in ("accept_texts", "accept_unmaintained")}
    parked.submit_due()
    try:
        workflow.erase(request.user, request.user, "at their own request", **accepted)
    except workflow.NamedInTexts as refusal:
        return _erasing(request, str(refusal), 409, wrong="accept-texts")
    except workflow.LastMaintainer as refusal:
        return _erasing(request, str(refusal), 409, wrong="accept-unmaintained")
    logout(request)
    messages.success(request, "Your account has been erased.")
    return redirect("sign-in")


def _erasing(request: Request, problem: str = "", status: int = 200, wrong: str = "password") -> HttpResponse:
    open_parts = access.memberships_of(request.user).filter(submission__frozen_at__isnull=True)
    context = {"problem": problem, "wrong": wrong, "memberships": open_parts}
    context["alone"] = workflow.find_solely_maintained(request.user)
    context["texts"] = [each.describe(whole=False) for each in workflow.find_named_places(request.user)]
    return render(request, "annotation/erasing.html", context, status=status)
