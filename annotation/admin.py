"""Administration of the instance. Labels and related data are not here, so that nothing bypasses `access`."""

from typing import Any, cast

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from annotation.models import Agent, Benchmark, Person
from annotation.models.people import PasswordWay
from annotation.workflow.passwords import record_account_change


class Kept(admin.ModelAdmin):
    """Admin without deletion: the confirmation page would list all related rows, such as flags and labels."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Person)
class PersonAdmin(Kept, UserAdmin):
    """People are deactivated, never deleted. A change here is recorded together with the operator who made it."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        person = super().get_object(request, object_id, from_field)
        if person is not None:
            own = person.pk == request.user.pk
            person.password_way = PasswordWay.OWN if own else PasswordWay.ADMINISTRATION
            person.password_actor = request.user
        return person

    def save_model(self, request: HttpRequest, obj: Person, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and form.changed_data:
            record_account_change(cast("Person", request.user), obj, form.changed_data)


@admin.register(Benchmark)
class BenchmarkAdmin(Kept):
    """The operator sets quotas here. Archiving also changes submissions and their events, so it has a page."""

    exclude = ("archived_at",)


admin.site.register(Agent, Kept)
# An identity or a second factor entered by an operator would let them act as the person, and nothing would record it.
admin.site.unregister([EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken])
