"""Migration of tokens without scope and expiry."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.models import ApiToken
from annotation.tests import testing
from annotation.tests.replaced_migrations import migrate

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]


@pytest.mark.usefixtures("transactional_db")
def test_earlier_token_keeps_its_rights_for_90_days() -> None:
    person, now = testing.person("amy"), timezone.now()
    old = migrate(("annotation", "0009_tries_of_uploads"))("annotation", "ApiToken")
    try:
        row = old.objects.create(person_id=person.pk, name="old", digest="0" * 64)
        old.objects.update(created_at=now - timedelta(days=400))
    finally:
        migrate()

    token = ApiToken.objects.get(pk=row.pk)
    assert token.scope == "admin"
    assert timedelta(days=89, hours=23) < token.expires_at - now < timedelta(days=90, hours=1)
