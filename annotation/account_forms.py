"""Forms of the account page."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.core.exceptions import ValidationError

from annotation import password_limits
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
