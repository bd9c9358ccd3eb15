"""Pages of the second factor and of the log of sign-ins, and the middleware that requires a second factor."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from allauth.account.stages import LoginStageController
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, logout
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation import access, second_factor, sign_in_flow, sign_ins
from annotation.views.answers import Request, act, page, paginate
from annotation.views.failures import forbidden

WRONG = "Wrong code, or it was used before. Enter the code that the app shows now, or a recovery code."
MINUTES = sign_in_flow.FRESH // timedelta(minutes=1)
WRONG_KEY = "The passkey was not accepted. Try again with the one that you added here."
# Pages on which a factor is set up, replaced or removed: only with the factor, if there is one.
FACTOR_PAGES = frozenset(["second-factor", "activate-totp", "add-passkey", "renew-codes", "remove-factor"])
# Pages that a person can use who still has to set up a factor.
OPEN = frozenset(
    ["second-factor", "activate-totp", "add-passkey", "sign-in", "sign-out", "mfa_authenticate", "session"]
)


class SecondFactorMiddleware:
    """Middleware that opens no page but those of `OPEN` to a session that lacks the required second factor."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Callable[..., Any], *args: Any) -> HttpResponse | None:
        if getattr(view, "is_public", False):  # the same for everybody: it must not depend on the session
            return None
        person, match = request.user, request.resolver_match
        if not person.is_authenticated or request.session.get(second_factor.SESSION_KEY):
            return None
        name = match.url_name if match is not None and not match.namespaces else ""
        if name in FACTOR_PAGES and second_factor.has_factor(person):
            logout(request)
            return redirect_to_login(request.get_full_path())
        if name in OPEN or not second_factor.is_required(person):
            return None
        if request.path_info.startswith("/api/"):
            return forbidden(request, PermissionError())
        if second_factor.has_factor(person):  # the session is older than the factor or the requirement
            logout(request)
            return redirect_to_login(request.get_full_path())
        return redirect("second-factor")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def enter_code(request: HttpRequest) -> HttpResponse:
    """Ask for the second factor between the first one and the session."""
    stage = LoginStageController.enter(request, AuthenticateStage.key)
    if stage is None:
        return redirect("sign-in")
    problem = ""
    if request.method == "POST":
        given = {field: request.POST.get(field, "") for field in ("code", "credential")}
        if authenticate(request, username=stage.login.user.get_username(), **given) is not None:
            return stage.exit()
        problem = WRONG_KEY if given["credential"] else WRONG
    context = {"problem": problem, "passkey": second_factor.start_passkey_check(stage.login.user)}
    context["no_passkeys"] = second_factor.refuse_passkeys(request)
    return render(request, "registration/enter_code.html", context, status=400 if problem else 200)


def _freshly(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Let only a recent sign-in change this, so that nobody does it at an unlocked screen."""

    @wraps(view)
    def checked(request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        if sign_ins.has_signed_in_since(request, timezone.now() - sign_in_flow.FRESH):
            return view(request, *args, **kwargs)
        text = f"You can do this for {MINUTES} minutes after a sign-in. Sign out, then sign in again."
        context = {"title": "Sign in again", "text": text}
        return render(request, "registration/not_signed_in.html", context, status=403)

    return checked


@page
@_freshly
def factors(request: Request) -> HttpResponse:
    """Show the person's factors, and how to set one up."""
    return _factors(request)


@act
@_freshly
def activate_totp(request: Request) -> HttpResponse:
    codes = second_factor.activate_totp(request, request.user, request.POST.get("code", ""))
    if codes is None:
        return _factors(request, problem="Wrong code. Enter the code that the app shows now.", status=400)
    return _factors(request, codes=codes)


@act
@_freshly
def add_passkey(request: Request) -> HttpResponse:
    name, credential = request.POST.get("name", "").strip(), request.POST.get("credential", "")
    codes = second_factor.add_passkey(request, request.user, name, credential)
    if codes is None:
        return _factors(request, passkey_problem="The passkey was not added. Try again.", status=400)
    return _factors(request, codes=codes)


@act
@_freshly
def renew_codes(request: Request) -> HttpResponse:
    if not second_factor.has_factor(request.user):
        return redirect("second-factor")
    return _factors(request, codes=second_factor.renew_recovery_codes(request, request.user))


@act
@_freshly
def remove(request: Request) -> HttpResponse:
    second_factor.remove_factors(request.user)
    request.session.pop(second_factor.SESSION_KEY, None)
    messages.success(request, "All factors removed.")
    return redirect("second-factor")


@act
@_freshly
def end_session(request: Request) -> HttpResponse:
    """Sign the person out in another browser."""
    if sign_ins.end_session(request.user, request.POST.get("session", "")):
        messages.success(request, "Signed out in that browser.")
    return redirect("account")


def _factors(request: Request, status: int = 200, **context: Any) -> HttpResponse:
    context["factors"] = Authenticator.objects.filter(user=request.user).order_by("pk")
    context["required"] = second_factor.is_required(request.user)
    if all(factor.type != Authenticator.Type.TOTP for factor in context["factors"]):
        context |= second_factor.start_totp(request)
    context["passkey"] = second_factor.start_passkey(request.user)
    context["no_passkeys"] = second_factor.refuse_passkeys(request)
    return render(request, "annotation/second_factor.html", context, status=status)


@page
def sign_in_log(request: Request) -> HttpResponse:
    """Show everybody's sign-ins to operators, the newest first."""
    access.require_superuser(request.user)
    shown = paginate(request, sign_ins.logged_sign_ins().select_related("person"), 100)
    return render(request, "annotation/sign_in_log.html", {"page": shown, "days": settings.SIGN_IN_LOG_DAYS})
