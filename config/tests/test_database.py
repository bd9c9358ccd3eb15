"""Options of connections to PostgreSQL."""

import pytest
from django.db import connection

from config import database
from config.tests.test_settings import PRODUCTION, python, setting


@pytest.mark.parametrize(
    ("query", "jit", "work_mem"),
    [
        ("", "off", None),
        ("?options=-c%20work_mem%3D9MB", "off", "9MB"),
        ("?options=-c%20jit%3Don&connect_timeout=2", "on", None),
    ],
)
def test_database_url_options_come_after_ours(query, jit, work_mem):
    shared = database.settings_from(f"postgres://u@h/d{query}", in_web_server=False)["OPTIONS"]
    set_by_options = dict(part.split("=") for part in shared["options"].split() if part != "-c")
    assert set_by_options == {"jit": jit} | ({"work_mem": work_mem} if work_mem else {})
    assert int(shared["connect_timeout"]) == (2 if "connect_timeout" in query else database.NETWORK["connect_timeout"])


def test_another_engine_gets_no_options_of_postgresql():
    assert not database.settings_from("sqlite:////tmp/db", in_web_server=True).get("OPTIONS")


def test_only_the_web_server_bounds_statements(tmp_path):
    shown = "'statement_timeout' in s.DATABASES['default']['OPTIONS']['options']"
    assert setting(tmp_path, shown, **PRODUCTION) == "False"
    in_web_server = python(tmp_path, "-c", f"import config.wsgi, config.settings as s; print({shown})", **PRODUCTION)
    assert in_web_server.stdout.strip() == "True"


@pytest.mark.postgresql
@pytest.mark.django_db
def test_connections_do_not_compile_queries():
    with connection.cursor() as cursor:
        cursor.execute("SHOW jit")
        assert cursor.fetchone() == ("off",)
