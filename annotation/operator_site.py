"""Django's administration, for the operators of the instance alone."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse


class OperatorSite(AdminSite):
    """Named in `annotation.apps.OperatorAdminConfig`."""

    def has_permission(self, request: HttpRequest) -> bool:
        """Return whether this is a superuser: what maintainers of the instance may do is on pages of its own."""
        return bool(request.user.is_active and request.user.is_superuser)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Send strangers to the sign-in, which has the limits on guessing, and refuse everybody else."""
        if request.user.is_authenticated and not self.has_permission(request):
            raise PermissionDenied("Only operators of the instance may open the administration.")
        home = reverse("admin:index")
        if self.has_permission(request):
            return redirect(home)
        return redirect_to_login(request.GET.get("next", home), login_url="sign-in")
