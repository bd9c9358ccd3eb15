"""The instance's own housekeeping. Labels and everything about them are not here: no back door around `access`."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from annotation.models import Agent, Benchmark, Person


class Kept(admin.ModelAdmin):
    """Nothing is deleted here: the page that asks for it lists what hangs on it, flags and labels among it."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Person)
class PersonAdmin(Kept, UserAdmin):
    """People are deactivated, never deleted."""


admin.site.register([Benchmark, Agent], Kept)
