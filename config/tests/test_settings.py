"""The environment decides, mistakes are told in one line, and the documentation lists what there is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.conf import settings

from judges.ready_judges import load_endpoint

BASE_DIR = Path(settings.BASE_DIR)
KEY = "0123456789 a key of the tests that is long and varied enough for the deployment checks"
PRODUCTION = {
    "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
    "SECRET_KEY": KEY,
    "ALLOWED_HOSTS": "webverdict.example.org",
}


def python(tmp_path, *arguments, **environment):
    """Run Python with nothing in the environment but what is given."""
    base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "WEBVERDICT_DATA": str(tmp_path / "var")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=BASE_DIR,
        env={**base, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def setting(tmp_path, expression, **environment):
    code = f"import config.settings as s; print({expression})"
    done = python(tmp_path, "-c", code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def last_line(done):
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


def test_every_variable_that_is_read_is_documented_and_the_other_way_round():
    source = (BASE_DIR / "config" / "settings.py").read_text()
    read = set(re.findall(r'environment\.\w+\(\s*"([A-Z0-9_]+)"', source))
    documented = set(
        re.findall(r"^\| `([A-Z0-9_]+)` \|", (BASE_DIR / "docs" / "reference" / "settings.md").read_text(), re.M)
    )
    assert read == documented
    assert "os.environ" not in source


@pytest.mark.parametrize(
    ("variable", "given", "says"),
    [
        ("LOG_LEVEL", "loud", "LOG_LEVEL must be DEBUG, INFO, WARNING or ERROR, not 'loud'."),
        ("LEASE_MINUTES", "-5", "LEASE_MINUTES must be a whole number of at least 1, not '-5'."),
        ("LEASE_MINUTES", "0", "LEASE_MINUTES must be a whole number of at least 1, not '0'."),
        ("ADJUDICATION_MINUTES", "0", "ADJUDICATION_MINUTES must be a whole number of at least 1, not '0'."),
        ("EMAIL_HOST", "mail.example", "SITE_URL must be set when EMAIL_HOST is set: links in e-mail begin with it."),
        ("EMAIL_HOST_PASSWORD_FILE", "/", "The e-mail password file / cannot be read: Is a directory."),
        ("LOG_FORMAT", "xml", "LOG_FORMAT must be line or json, not 'xml'."),
        ("METRICS_TOKEN", "sesame", "METRICS_TOKEN must be at least 16 letters, digits or the characters ._~+/=-"),
        (
            "OIDC_ISSUER",
            "http://login.example.org",
            "OIDC_ISSUER must begin with https:// and have at most 191 characters and no query.",
        ),
        (
            "OIDC_ISSUER",
            "https://login.example.org",
            "OIDC_CLIENT_ID and OIDC_CLIENT_SECRET must be set when OIDC_ISSUER is set.",
        ),
        ("OIDC_CLIENT_SECRET_FILE", "/nowhere", "The secret file /nowhere cannot be read: No such file or directory."),
        ("LOCAL_SIGN_IN", "0", "LOCAL_SIGN_IN can be 0 only when OIDC_ISSUER is set. Otherwise nobody could sign in."),
        ("REQUIRE_MFA", "all", "REQUIRE_MFA must be off, operators, maintainers or everybody, not 'all'."),
        ("BEHIND_PROXY", "two", "BEHIND_PROXY must be a whole number of at least 0, not 'two'."),
    ],
)
def test_settings_name_the_values_that_a_variable_takes_when_it_has_another(tmp_path, variable, given, says):
    done = python(
        tmp_path,
        "-c",
        "import django; django.setup()",
        **{variable: given, "DJANGO_SETTINGS_MODULE": "config.settings"},
    )

    assert last_line(done) == f"django.core.exceptions.ImproperlyConfigured: {says}"


def test_settings_name_all_faults_at_once(tmp_path):
    faulty = {"LOG_LEVEL": "loud", "BEHIND_PROXY": "two", "JUDGE_ENDPOINTS": "gpu", "DATABASE_URL": "postgres://x@y/z"}
    done = python(tmp_path, "manage.py", "check", **faulty)
    assert done.returncode == 1
    names = ("BEHIND_PROXY", "SECRET_KEY", "ALLOWED_HOSTS", "LOG_LEVEL", "JUDGE_ENDPOINTS")
    lines = done.stderr.splitlines()
    assert lines[0] == "The settings cannot be used:"
    assert [line.split()[0] for line in lines[1:]] == list(names)


def test_every_variable_of_the_env_template_is_used_by_the_compose_file_and_the_other_way_round():
    template = set(re.findall(r"^#?([A-Z0-9_]+)=", (BASE_DIR / ".env.example").read_text(), re.M))
    compose = set(re.findall(r"\$\{([A-Z0-9_]+)", (BASE_DIR / "docker-compose.yml").read_text()))
    assert template == compose


# What docker-compose.yml decides itself, since its containers need exactly this.
DECIDED_BY_COMPOSE = {
    *("DATABASE_URL", "REDIS_URL", "S3_BUCKET", "S3_ENDPOINT_URL", "S3_REGION"),  # its own services
    *("ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS"),  # its own proxy
    "WEBVERDICT_DATA",  # a folder of the image
    "INSECURE_HTTP",  # the proxy ends HTTPS
}
APPLICATION = ["migrate", "web", "worker", "judge-worker", "mail-worker", "beat"]
MAIL = ("PORT", "USE_TLS", "USE_SSL", "HOST_USER", "HOST_PASSWORD", "HOST_PASSWORD_FILE", "TIMEOUT")
ONE_SERVICE_ONLY = {
    **{name: ["judge-worker"] for name in ("ANCHOR_FILE", "ANCHOR_WEBHOOK", "ANCHOR_TIME_STAMP")},
    **{f"EMAIL_{name}": ["mail-worker"] for name in MAIL},
    "DEFAULT_FROM_EMAIL": ["mail-worker"],
}


def test_compose_passes_every_documented_variable_to_the_application():
    services = yaml.safe_load((BASE_DIR / "docker-compose.yml").read_text())["services"]
    documented = set(
        re.findall(r"^\| `([A-Z0-9_]+)` \|", (BASE_DIR / "docs" / "reference" / "settings.md").read_text(), re.M)
    )
    assert documented >= DECIDED_BY_COMPOSE | ONE_SERVICE_ONLY.keys()
    missing = {
        f"{service}: {name}"
        for name in documented - DECIDED_BY_COMPOSE
        for service in ONE_SERVICE_ONLY.get(name, APPLICATION)
        if f"${{{name}:" not in str(services[service]["environment"].get(name))
    }
    assert not missing


UNITS = {"m": 1, "g": 1024}  # in MiB


def test_compose_limits_every_service_to_two_processors_and_all_together_to_less_than_8_gib():
    services = yaml.safe_load((BASE_DIR / "docker-compose.yml").read_text())["services"]
    assert [name for name, service in services.items() if not 0 < service.get("cpus", 0) <= 2] == []
    limits = {name: service.get("mem_limit", "") for name, service in services.items()}
    assert not [name for name, limit in limits.items() if not re.fullmatch(r"\d+[mg]", limit)]
    del limits["migrate"], limits["backup"]  # they end
    assert sum(int(limit[:-1]) * UNITS[limit[-1]] for limit in limits.values()) <= 8 * 1024


def test_the_web_server_of_the_compose_file_may_start_runs_and_knows_no_key(monkeypatch, settings):
    services = yaml.safe_load((BASE_DIR / "docker-compose.yml").read_text())["services"]
    given = {name: service.get("environment", {}) for name, service in services.items()}
    holders = {name for name, environment in given.items() if "JUDGE_API_KEY_DEFAULT_FILE" in environment}
    assert holders == {"judge-worker"}
    assert "JUDGE_API_KEY_DEFAULT" not in given["judge-worker"]  # it would come before the file
    monkeypatch.delenv("JUDGE_API_KEY_DEFAULT", raising=False)
    monkeypatch.delenv("JUDGE_API_KEY_DEFAULT_FILE", raising=False)
    for name in {"JUDGE_API_KEY_DEFAULT", "JUDGE_API_KEY_DEFAULT_FILE"} & given["web"].keys():
        monkeypatch.setenv(name, given["web"][name])
    settings.JUDGE_ENDPOINTS = {"default": "https://api.example.com/v1"}
    assert load_endpoint("default").key == "none"  # raises NotConfigured where no run could be started


def test_the_env_template_sets_no_secret():
    lines = (BASE_DIR / ".env.example").read_text().splitlines()
    secrets = [line for line in lines if re.match(r"#?\w*(PASSWORD|SECRET|ACCESS)\w*=", line)]
    assert secrets
    assert all(line.endswith("=") for line in secrets)


def test_with_nothing_set_everything_is_in_the_data_folder(tmp_path):
    shown = setting(
        tmp_path, "s.DATABASES['default']['NAME'], s.CELERY_BROKER_TRANSPORT_OPTIONS['folder'], s.MEDIA_ROOT"
    )
    assert shown.count(str(tmp_path / "var")) == 3
    assert setting(tmp_path, "s.DEBUG, s.SECURE_SSL_REDIRECT") == "False False"


def test_the_secret_key_is_made_once_and_only_the_owner_may_read_it(tmp_path):
    first = setting(tmp_path, "s.SECRET_KEY")
    assert len(first) >= 50
    assert setting(tmp_path, "s.SECRET_KEY") == first
    assert (tmp_path / "var" / "secret_key").stat().st_mode & 0o777 == 0o600


def test_processes_that_start_together_agree_on_one_secret_key(tmp_path):
    command = [sys.executable, "-c", "import config.settings as s; print(s.SECRET_KEY)"]
    environment = {"PATH": os.environ["PATH"], "WEBVERDICT_DATA": str(tmp_path)}
    started = [
        subprocess.Popen(command, cwd=BASE_DIR, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    assert len({process.communicate()[0] for process in started}) == 1


@pytest.mark.parametrize("missing", ["SECRET_KEY", "ALLOWED_HOSTS"])
def test_production_names_what_is_missing_in_one_line(tmp_path, missing):
    environment = {name: value for name, value in PRODUCTION.items() if name != missing}
    line = last_line(python(tmp_path, "-c", "import config.settings", **environment))
    assert line.startswith("django.core.exceptions.ImproperlyConfigured: ")
    assert missing in line


def test_production_reads_the_secret_key_from_a_file(tmp_path):
    (tmp_path / "key").write_text(f"{KEY}\n")
    environment = {**PRODUCTION, "SECRET_KEY": "", "SECRET_KEY_FILE": str(tmp_path / "key")}
    assert setting(tmp_path, "s.SECRET_KEY", **environment) == KEY


@pytest.mark.parametrize(("content", "word"), [(None, "cannot be read"), ("\n", "is empty")])
def test_a_useless_secret_key_file_is_named(tmp_path, content, word):
    if content is not None:
        (tmp_path / "key").write_text(content)
    environment = {**PRODUCTION, "SECRET_KEY": "", "SECRET_KEY_FILE": str(tmp_path / "key")}
    line = last_line(python(tmp_path, "-c", "import config.settings", **environment))
    assert word in line
    assert str(tmp_path / "key") in line


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("", {}),
        ("http://127.0.0.1:8000/v1", {"default": "http://127.0.0.1:8000/v1"}),
        (
            "openai=https://api.openai.example/v1, local=http://gpu:8000/v1?a=b",
            {"openai": "https://api.openai.example/v1", "local": "http://gpu:8000/v1?a=b"},
        ),
    ],
)
def test_endpoints_are_addresses_by_name(tmp_path, given, read):
    assert setting(tmp_path, "s.JUDGE_ENDPOINTS", JUDGE_ENDPOINTS=given) == str(read)


@pytest.mark.parametrize(
    "given", ["gpu:8000", "local=ftp://gpu", "two words=http://gpu", "http://me:sesame@gpu/v1", "a=http://x,a=http://y"]
)
def test_a_useless_endpoint_is_named_and_nothing_secret_in_it_is_shown(tmp_path, given):
    said = last_line(python(tmp_path, "-c", "import config.settings", JUDGE_ENDPOINTS=given))
    assert "JUDGE_ENDPOINTS" in said
    assert "sesame" not in said


@pytest.mark.parametrize(
    "given", ["hooks/sesame", "ftp://gpu/sesame", "http:///sesame", "http://x/ses ame", "https://x:sesame"]
)
def test_a_useless_place_of_anchors_is_named_and_nothing_secret_in_it_is_shown(tmp_path, given):
    said = last_line(python(tmp_path, "-c", "import config.settings", ANCHOR_WEBHOOK=given))
    assert "ANCHOR_WEBHOOK" in said
    assert "ame" not in said.replace("name", "")


def test_anchors_are_published_at_intervals_unless_the_interval_is_0(tmp_path):
    shown = "s.CELERY_BEAT_SCHEDULE.get('publish-anchors', {}).get('schedule')"
    assert setting(tmp_path, shown) == "3600.0"
    assert setting(tmp_path, shown, ANCHOR_MINUTES="5") == "300.0"
    assert setting(tmp_path, shown, ANCHOR_MINUTES="0") == "None"


@pytest.mark.parametrize(("name", "value"), [("BEHIND_PROXY", "two"), ("INSECURE_HTTP", "perhaps")])
def test_a_value_of_the_wrong_kind_is_named(tmp_path, name, value):
    line = last_line(python(tmp_path, "-c", "import config.settings", **{**PRODUCTION, name: value}))
    assert name in line
    assert value in line


def test_production_serves_https_only_unless_it_is_switched_off(tmp_path):
    shown = "s.SECURE_SSL_REDIRECT, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.SECURE_HSTS_SECONDS > 0"
    assert setting(tmp_path, shown, **PRODUCTION) == "True True True True"
    assert setting(tmp_path, shown, **PRODUCTION, INSECURE_HTTP="1") == "False False False False"


def test_cookies_of_production_have_names_that_only_this_host_can_set(tmp_path):
    shown = "s.COOKIE_PREFIX, s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME"
    assert setting(tmp_path, shown, **PRODUCTION) == "__Host- __Host-sessionid __Host-csrftoken"
    assert setting(tmp_path, shown, **PRODUCTION, INSECURE_HTTP="1") == "sessionid csrftoken"


def test_templates_of_the_settings_extend_hsts_to_subdomains():
    for file in (".env.example", "config/kubernetes/settings.env"):
        assert "HSTS_INCLUDE_SUBDOMAINS=1" in (BASE_DIR / file).read_text().splitlines()


def test_only_services_that_need_it_reach_the_internet():
    services = yaml.safe_load((BASE_DIR / "docker-compose.yml").read_text())
    assert services["networks"]["inside"] == {"internal": True}
    outside = {name for name, service in services["services"].items() if "outside" in service["networks"]}
    assert outside == {"judge-worker", "mail-worker", "proxy"}


def test_the_header_of_a_proxy_counts_only_when_there_is_one(tmp_path):
    shown = "hasattr(s, 'SECURE_PROXY_SSL_HEADER')"
    assert setting(tmp_path, shown, **PRODUCTION) == "False"
    assert setting(tmp_path, shown, **PRODUCTION, BEHIND_PROXY="1") == "True"


def test_hsts_of_subdomains_and_preload_are_settings_of_their_own(tmp_path):
    shown = "s.SECURE_HSTS_SECONDS > 0, s.SECURE_HSTS_INCLUDE_SUBDOMAINS, s.SECURE_HSTS_PRELOAD"
    assert setting(tmp_path, shown, **PRODUCTION) == "True False False"
    assert setting(tmp_path, shown, **PRODUCTION, HSTS_INCLUDE_SUBDOMAINS="1") == "True True False"
    assert setting(tmp_path, shown, **PRODUCTION, HSTS_PRELOAD="1") == "True False True"


def test_images_go_to_s3_when_a_bucket_is_named(tmp_path):
    shown = "s.STORAGES['default']['BACKEND'], s.STORAGES['default']['OPTIONS']['endpoint_url']"
    given = {"S3_BUCKET": "images", "S3_ENDPOINT_URL": "http://store:9000"}
    assert setting(tmp_path, shown, **given) == "config.store.Store http://store:9000"


def test_the_deployment_checks_find_nothing_in_production(tmp_path):
    done = python(tmp_path, "manage.py", "check", "--deploy", "--fail-level", "WARNING", **PRODUCTION, BEHIND_PROXY="1")
    assert done.returncode == 0, done.stderr
