"""Django's administration, only for operators of the instance."""

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
        """Return whether the user is a superuser. Maintainers have their own pages."""
        return bool(request.user.is_active and request.user.is_superuser)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Redirect anonymous users to the sign-in page, which limits guesses, and refuse everybody else."""
        if request.user.is_authenticated and not self.has_permission(request):
            raise PermissionDenied("Only operators of the instance may open the administration.")
        home = reverse("admin:index")
        if self.has_permission(request):
            return redirect(home)
        return redirect_to_login(request.GET.get("next", home), login_url="sign-in")
