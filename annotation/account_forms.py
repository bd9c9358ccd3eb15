"""Forms of the account page."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.core.exceptions import ValidationError

from annotation import password_limits
from annotation.models import MailGroup
from annotation.models.people import DEFAULT_LIFETIME, LONGEST_LIFETIME, PasswordWay, Scope


class OwnPasswordForm(PasswordChangeForm):
    """Change of the person's own password. Wrong guesses of the old one count as failed sign-ins."""

    def __init__(self, request: Any, data: Any = None) -> None:
        super().__init__(request.user, data)
        self.user.password_way = PasswordWay.OWN
        self.request = request
        self.fields["old_password"].widget.attrs.pop("autofocus", None)  # the page has other forms too

    def clean_old_password(self) -> str:
        old: str = self.cleaned_data["old_password"]
        if not password_limits.confirms_password(self.request, old):
            raise ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return old


class AddressForm(forms.Form):
    """The person's e-mail address. A wrong password counts as a failed sign-in."""

    email = forms.EmailField(
        label="E-mail address", max_length=254, required=False, help_text="Leave it empty to get no e-mail."
    )
    password = forms.CharField(
        label="Current password", widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )

    def __init__(self, request: Any, data: Any = None) -> None:
        super().__init__(data, auto_id="address_%s", initial={"email": request.user.email})
        self.request = request

    def clean_password(self) -> str:
        given: str = self.cleaned_data["password"]
        if not password_limits.confirms_password(self.request, given):
            raise ValidationError("The password is wrong.")
        return given


class MailForm(forms.Form):
    """The groups of messages that a person wants by e-mail, each a checkbox."""

    def __init__(self, data: Any = None, unwanted: Collection[str] = ()) -> None:
        super().__init__(data, auto_id="mail_%s", label_suffix="")
        for group in MailGroup:
            self.fields[group.value] = forms.BooleanField(
                label=group.label, required=False, initial=group not in unwanted
            )

    @property
    def unwanted(self) -> list[str]:
        return [name for name, wanted in self.cleaned_data.items() if not wanted]


class ForgottenPasswordForm(forms.Form):
    # Named so that the record of the request leaves it out (AXES_SENSITIVE_PARAMETERS).
    username = forms.CharField(label="User name or e-mail address", max_length=254)


class TokenForm(forms.Form):
    name = forms.CharField(label="Purpose", max_length=100)
    scope = forms.ChoiceField(choices=Scope.choices, help_text="Each scope includes those above it.")
    days = forms.IntegerField(
        label="Days until it expires", min_value=1, max_value=LONGEST_LIFETIME, initial=DEFAULT_LIFETIME
    )


class PhraseForm(forms.Form):
    text = forms.CharField(
        label="New phrase", max_length=500, error_messages={"required": "Select or type the words first."}
    )


class AffiliationForm(forms.Form):
    organisation = forms.CharField(
        max_length=200,
        help_text="You cannot judge its agents or decide about its entries until you end the affiliation.",
    )
