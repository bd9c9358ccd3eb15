"""Settings of WebVerdict, from environment variables; docs/reference/settings.md lists every variable, with the
comment `#:` above it here.

Without variables this is the embedded profile: SQLite, a broker of files and local images, all in one folder.
DATABASE_URL selects the production profile: required values have no defaults, and only HTTPS is served.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from annotation import extras
from annotation.formats import scratch
from config import database, environment, versions
from config.fixed_settings import *  # noqa: F403

BASE_DIR = Path(__file__).resolve().parent.parent

# --- Profile -------------------------------------------------------------------------------------------------

#: The data folder: database, broker, images, logs, collected static files and secret key (`var` in the checkout). In
#: production it has only the static files. In the embedded profile each start closes it to other users of the machine
#: (folder 0700, files 0600).
DATA = Path(environment.text("WEBVERDICT_DATA", str(BASE_DIR / "var"))).resolve()
#: The database, for example `postgres://user:password@host:5432/webverdict`. Selects the production profile.
DATABASE_URL = environment.text("DATABASE_URL")
#: Broker and cache, for example `redis://:password@host:6379/0`. Without it, the broker is a folder in
#: `WEBVERDICT_DATA`, which works on one machine only.
REDIS_URL = environment.text("REDIS_URL")
#: The bucket of images and uploads. It must exist and be private. Without it they are on the local disk.
S3_BUCKET = environment.text("S3_BUCKET")
#: The address (DSN) of Sentry or a compatible service, which gets errors without data of people. Needs the extra
#: `sentry`, and a way to that address from every process.
SENTRY_DSN = environment.address("SENTRY_DSN")
PRODUCTION = bool(DATABASE_URL)
for module, needed_by, needed in (
    ("psycopg", "DATABASE_URL", DATABASE_URL.startswith("postgres")),
    ("redis", "REDIS_URL", REDIS_URL),
    ("storages", "S3_BUCKET", S3_BUCKET),
    ("sentry_sdk", "SENTRY_DSN", SENTRY_DSN),
):
    if needed and (missing := extras.explain_missing(module, needed_by)):
        environment.add_fault(missing)
#: Serve plain HTTP: no redirect to HTTPS, no HSTS, cookies without `Secure`. For tests only.
SECURE = PRODUCTION and not environment.flag("INSECURE_HTTP")
#: Number of reverse proxies in front. With 0, WebVerdict ignores `X-Forwarded-Proto` and `X-Forwarded-For`, because
#: anybody could send them. If a proxy terminates HTTPS, set at least 1, or pages redirect endlessly.
BEHIND_PROXY = environment.number("BEHIND_PROXY", 0)

DATABASE_FILE = DATA / "webverdict.sqlite3"
if not PRODUCTION:
    environment.make_private(DATA)
    DATABASE_FILE.touch(mode=0o600)  # SQLite gives its journals the mode of the database

DEBUG = False
SECRET_KEY = environment.secret_key(
    #: Signs sessions and encrypts the signing key of evidence bundles: at least 50 random characters. Production
    #: requires it or `SECRET_KEY_FILE`. The embedded profile creates one in the file `secret_key`.
    environment.text("SECRET_KEY"),
    #: A file that contains the secret key, for example a Docker secret.
    environment.text("SECRET_KEY_FILE"),
    kept_in=None if PRODUCTION else DATA / "secret_key",
)
#: Former secret keys, separated by commas. They keep sessions and the signing key usable after a change. Run
#: `export_evidence` once, wait `SESSION_DAYS`, then remove them.
SECRET_KEY_FALLBACKS = environment.words("SECRET_KEY_FALLBACKS")
#: Host names that are served, separated by commas. Production requires it. The embedded profile also serves localhost.
ALLOWED_HOSTS = environment.words("ALLOWED_HOSTS")
if PRODUCTION and not ALLOWED_HOSTS:
    environment.add_fault("ALLOWED_HOSTS must be set when DATABASE_URL is set.")
if not PRODUCTION:
    ALLOWED_HOSTS += ["localhost", "127.0.0.1", "[::1]"]
#: Origins such as `https://review.example.org`, separated by commas. Needed if a proxy changes the header Host.
CSRF_TRUSTED_ORIGINS = environment.words("CSRF_TRUSTED_ORIGINS")

# --- Application ---------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "annotation.apps.OperatorAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "annotation",
    "judges",
    "evaluations",
    "config",  # for `manage.py doctor`
]
if (BASE_DIR / "bench").is_dir():  # only in a checkout: the image does not contain it
    INSTALLED_APPS += ["bench"]  # for `manage.py bench`

MIDDLEWARE = [
    "config.access_log.AccessLog",
    "csp.middleware.CSPMiddleware",  # before all that answer by themselves, as the next one
    "django.middleware.security.SecurityMiddleware",
    "config.health.HealthMiddleware",  # early: probes use an address, without our host name
    "config.metrics.MetricsMiddleware",
    "annotation.views.failures.InsecureApi",
    "annotation.views.failures.LongAddresses",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.cookies.FormerNames",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "config.authentication.AuthenticationMiddleware",
    "config.authentication.SignInBeforeFiles",
    "annotation.sign_ins.SessionUseMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "annotation.views.second_factor.SecondFactorMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",  # last, as its manual requires
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

LANGUAGE_CODE = "en-us"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Database, cache -----------------------------------------------------------------------------------------

DATABASES: dict[str, Any]
if PRODUCTION:
    DATABASES = {"default": database.settings_from(DATABASE_URL, in_web_server=environment.IN_WEB_SERVER)}
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": DATABASE_FILE,
            "OPTIONS": {
                # With DEFERRED, a transaction that reads and then writes fails at once if another one wrote.
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                # secure_delete: deleted data is overwritten, since people can be erased.
                "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; "
                "PRAGMA secure_delete = ON",
            },
            # A file, since the threads and processes of the race tests cannot share a database in memory.
            "TEST": {"NAME": DATA / "test.sqlite3"},
        }
    }

CACHES: dict[str, Any]
if REDIS_URL:
    CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": REDIS_URL,
            "KEY_PREFIX": "webverdict",
            "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1, "retry": None},  # seconds
        }
    }
    CACHES["shared"] = CACHES["default"] | {"TIMEOUT": None}
else:
    CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
        # For `config.heartbeats`: all processes read and write it.
        "shared": {
            "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
            "LOCATION": DATA / "state",
            "TIMEOUT": None,
        },
    }

# --- Files ---------------------------------------------------------------------------------------------------

MEDIA_URL = "/never-served/"  # never serve originals to browsers
STATIC_URL = "/static/"
COLLECTED = BASE_DIR / "collected"  # in the installed package, which was built with them
STATIC_ROOT = COLLECTED if COLLECTED.is_dir() else DATA / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
MEDIA_ROOT = DATA / "images"

STORAGES: dict[str, Any] = {
    "default": {"BACKEND": "annotation.screenshots.AtomicFileSystemStorage"},
    "staticfiles": {"BACKEND": "config.static_files.HashedStaticFiles"},
}
if S3_BUCKET and find_spec("storages"):
    from config import s3

    STORAGES["default"] = {
        "BACKEND": s3.BACKEND,
        "OPTIONS": s3.s3_options(
            bucket=S3_BUCKET,
            #: Address of an S3-compatible store other than Amazon's, as web servers and workers reach it.
            endpoint_url=environment.text("S3_ENDPOINT_URL"),
            #: Access key. Without it the AWS client searches its usual places.
            access_key=environment.text("S3_ACCESS_KEY"),
            #: The secret of the access key.
            secret_key=environment.text("S3_SECRET_KEY"),
            #: Region of the bucket.
            region=environment.text("S3_REGION"),
            in_web_server=environment.IN_WEB_SERVER,
        ),
    }

#: The largest submission or evidence bundle that pages and the API accept, in bytes (default: 4 GiB). Task files can
#: have 1/16 of it. A proxy in front must accept as much.
WEBVERDICT_MAX_UPLOAD_BYTES = environment.number("WEBVERDICT_MAX_UPLOAD_BYTES", 4 * 1024**3)
#: The largest package that arrives in parts, in bytes (default: 32 GiB). It also needs twice its size on the disk.
MAX_RESUMABLE_BYTES = environment.number("MAX_RESUMABLE_BYTES", 32 * 1024**3)
FILE_UPLOAD_TEMP_DIR = scratch.ProcessFolder()

#: Reading limit of `check_store` and of the weekly check of stored files, in bytes per second. 0: no limit.
STORE_CHECK_BYTES_PER_SECOND = environment.number("STORE_CHECK_BYTES_PER_SECOND", 50_000_000)

# --- People --------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "annotation.Person"

#: The issuer of an OpenID Connect provider, exactly as its discovery document names it, such as
#: `https://login.example.org`. It turns on single sign-on. Register `https://SITE/sign-in/provider/callback` there as
#: the redirect address.
OIDC_ISSUER = environment.issuer("OIDC_ISSUER")
#: The client that the provider registered for this instance. Required with `OIDC_ISSUER`.
OIDC_CLIENT_ID = environment.text("OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = environment.secret(
    #: The secret of the client.
    environment.text("OIDC_CLIENT_SECRET"),
    #: A file that contains the secret of the client, for example a Docker secret.
    environment.text("OIDC_CLIENT_SECRET_FILE"),
)
#: The name of the provider on the sign-in button.
OIDC_NAME = environment.text("OIDC_NAME", "single sign-on")
#: The claim with the groups of a person: a list of names.
OIDC_GROUPS_CLAIM = environment.text("OIDC_GROUPS_CLAIM", "groups")
#: Only members of this group are operators (superusers). It is applied at each sign-in at the
#: provider. People in a mapped group need no invitation. If it is not set, sign-ins do not change who is an operator.
OIDC_OPERATOR_GROUP = environment.text("OIDC_OPERATOR_GROUP")
#: Members of this group are maintainers of the instance, other people are not, as with `OIDC_OPERATOR_GROUP`.
OIDC_MAINTAINER_GROUP = environment.text("OIDC_MAINTAINER_GROUP")
#: With 0, nobody signs in or joins with a password. An operator can still sign in with the link that `sign_in_link`
#: prints. Needs `OIDC_ISSUER`.
LOCAL_SIGN_IN = environment.flag("LOCAL_SIGN_IN", default=True)
environment.check_sign_in(OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, LOCAL_SIGN_IN)
#: Who must have a second factor: `operators`, `maintainers` (of the instance, and operators), `everybody` or `off`. All
#: can set one up. The embedded profile has `off` by default.
REQUIRE_MFA = environment.choice(
    "REQUIRE_MFA", "operators" if PRODUCTION else "off", "off operators maintainers everybody"
)

# --- Retention -----------------------------------------------------------------------------------------------

#: Days until a sign-in (time, address, browser and method) is deleted, at least 1.
SIGN_IN_LOG_DAYS = environment.number("SIGN_IN_LOG_DAYS", 90, least=1)
#: Days from a sign-in until its session ends, even if it is in use. A change applies to a session at its next use.
SESSION_DAYS = environment.number("SESSION_DAYS", 14, least=1)
SESSION_COOKIE_AGE = SESSION_DAYS * 24 * 3600
#: Days until a message to a person or a webhook is deleted, at least 1.
MESSAGE_DAYS = environment.number("MESSAGE_DAYS", 180, least=1)
#: Days from the last change until a draft is deleted. Drafts of reserved trajectories and open adjudications stay.
#: 0: never.
DRAFT_DAYS = environment.number("DRAFT_DAYS", 0)
#: Days until the record of a finished upload (file name and report) is deleted; the submission has its own copy of the
#: report. 0: never. Packages themselves are deleted after the import.
UPLOAD_DAYS = environment.number("UPLOAD_DAYS", 0)
#: Hours until a package that was only checked is deleted, at least 1.
CHECKED_PACKAGE_HOURS = environment.number("CHECKED_PACKAGE_HOURS", 24, least=1)
#: Hours after its last part until an unfinished upload is deleted, at least 1.
UNFINISHED_UPLOAD_HOURS = environment.number("UNFINISHED_UPLOAD_HOURS", 48, least=1)

# --- Security ------------------------------------------------------------------------------------------------

SECURE_SSL_REDIRECT = SECURE
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if SECURE else 0
#: Add `includeSubDomains` to HSTS: browsers refuse plain HTTP from all subdomains for a year. Set it only if all of
#: them serve HTTPS.
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE and environment.flag("HSTS_INCLUDE_SUBDOMAINS")
#: Add `preload` to HSTS, for a domain on the preload list of browsers (https://hstspreload.org/). Removal from that
#: list takes months.
SECURE_HSTS_PRELOAD = SECURE and environment.flag("HSTS_PRELOAD")
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]  # both also affect other sites of the domain
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$", "^api/"]  # InsecureApi refuses the last
COOKIE_PREFIX = "__Host-" if SECURE else ""  # browsers accept it from this host alone, and only by HTTPS
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = COOKIE_PREFIX + "sessionid", COOKIE_PREFIX + "csrftoken"
MESSAGE_STORAGE = "config.cookies.MessageStorage"
SESSION_COOKIE_SECURE = SECURE
CSRF_COOKIE_SECURE = SECURE
CSRF_COOKIE_HTTPONLY = True
#: Hours without a request after which people sign in again.
SESSION_IDLE_HOURS = environment.number("SESSION_IDLE_HOURS", 24, least=1)
#: Most requests to public registries per minute and IP address (IPv6: per /64 network). 0: no limit. Without
#: `REDIS_URL` each web server process counts for itself.
REGISTRY_REQUESTS_PER_MINUTE = environment.number("REGISTRY_REQUESTS_PER_MINUTE", 300)
if BEHIND_PROXY:
    # Without a proxy that overwrites it, anybody could send this header.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# --- E-mail --------------------------------------------------------------------------------------------------

#: The mail server (SMTP). Without it WebVerdict sends no e-mail: people read their messages on *Account*. All processes
#: need the same value; only the mail worker connects to it.
EMAIL_HOST = environment.text("EMAIL_HOST")
#: Encrypt with STARTTLS, usually on port 587.
EMAIL_USE_TLS = environment.flag("EMAIL_USE_TLS")
#: Encrypt from the first byte, usually on port 465.
EMAIL_USE_SSL = environment.flag("EMAIL_USE_SSL")
if EMAIL_USE_TLS and EMAIL_USE_SSL:
    environment.add_fault("Set EMAIL_USE_TLS or EMAIL_USE_SSL, not both.")
#: Port of the mail server. 0: 465, 587 or 25, depending on the encryption.
EMAIL_PORT = environment.number("EMAIL_PORT", 0) or (465 if EMAIL_USE_SSL else 587 if EMAIL_USE_TLS else 25)
#: User name at the mail server, if it requires one.
EMAIL_HOST_USER = environment.text("EMAIL_HOST_USER")
#: The password of this user.
EMAIL_HOST_PASSWORD = environment.text("EMAIL_HOST_PASSWORD") or environment.read_secret(
    #: A file that contains this password, for example a Docker secret.
    environment.text("EMAIL_HOST_PASSWORD_FILE"),
    "e-mail password",
)
#: Seconds that the mail worker waits to connect, and then for each answer of the mail server.
EMAIL_TIMEOUT = environment.number("EMAIL_TIMEOUT", 15, least=1)
#: The address of this site for links in e-mail, such as `https://review.example.org`. Required with `EMAIL_HOST`.
SITE_URL = environment.address("SITE_URL").rstrip("/") or ("" if EMAIL_HOST else "http://127.0.0.1:8000")
if not SITE_URL:
    environment.add_fault("SITE_URL must be set when EMAIL_HOST is set: links in e-mail begin with it.")
#: The sender of all e-mail. Default: `webverdict@` and the host of `SITE_URL`.
DEFAULT_FROM_EMAIL = environment.text("DEFAULT_FROM_EMAIL") or f"WebVerdict <webverdict@{urlsplit(SITE_URL).hostname}>"
# Without a mail server, the embedded profile writes e-mail into the log of the worker.
backend = "smtp" if EMAIL_HOST else "dummy" if PRODUCTION else "console"
EMAIL_BACKEND = f"django.core.mail.backends.{backend}.EmailBackend"

#: Hosts (`hooks.example.org`) and networks (`10.1.0.0/16`) of your own, separated by commas, that webhooks may reach by
#: plain HTTP, on any port, and at private addresses. All other webhooks need HTTPS and a public address.
WEBHOOK_HOSTS = environment.words("WEBHOOK_HOSTS")

# --- Jobs ----------------------------------------------------------------------------------------------------

BROKER_FOLDER = DATA / "broker"
if REDIS_URL:
    CELERY_BROKER_URL = REDIS_URL
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
        # Seconds until an unacknowledged message is delivered to another worker; longer than any job, or a long
        # import would run twice.
        "visibility_timeout": 3600,
        # Seconds between two checks for lost messages, and checks per scan: the defaults notice after 100 seconds.
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "global_keyprefix": "webverdict:",
        # Seconds. A request tries twice to send a message, within two seconds; see CELERY_TASK_PUBLISH_RETRY_POLICY.
        "socket_connect_timeout": 0.9 if environment.IN_WEB_SERVER else 5,
        "socket_timeout": 0.9 if environment.IN_WEB_SERVER else 10,
    }
else:
    CELERY_BROKER_URL = "filesystem://localhost//"
    CELERY_BROKER_TRANSPORT = "config.filesystem_broker:Transport"
    CELERY_BROKER_TRANSPORT_OPTIONS = {"folder": str(BROKER_FOLDER), "polling_interval": 0.1}
CELERY_TIMEZONE = TIME_ZONE
CELERY_WORKER_ENABLE_REMOTE_CONTROL = bool(REDIS_URL)  # the broker of files has no broadcast
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA / "beat-schedule")
CELERY_BEAT_SCHEDULE: dict[str, Any] = {
    "resume-uploads": {"task": "annotation.jobs.resume_uploads", "schedule": 15.0, "options": {"expires": 15}},
    "resume-bundles": {"task": "evaluations.jobs.resume_bundles", "schedule": 15.0, "options": {"expires": 15}},
    "forget-bundles": {"task": "evaluations.jobs.forget_bundles", "schedule": 86_400.0},
    "prune-images": {"task": "annotation.jobs.prune_images", "schedule": 86_400.0},
    "check-chains": {"task": "annotation.jobs.check_chains", "schedule": 300.0},
    "check-store": {"task": "annotation.jobs.check_store", "schedule": 300.0},
    "forget-sign-ins": {"task": "annotation.jobs.forget_sign_ins", "schedule": 86_400.0},
    "submit-parked": {"task": "annotation.jobs.submit_parked", "schedule": 5.0, "options": {"expires": 5}},
    "return-leases": {"task": "annotation.jobs.return_leases", "schedule": 300.0},
    "resume-runs": {"task": "judges.jobs.resume_runs", "schedule": 15.0},
    "queue-webhooks": {"task": "annotation.jobs.queue_webhooks", "schedule": 5.0, "options": {"expires": 5}},
    "write-messages": {"task": "annotation.jobs.write_messages", "schedule": 3600.0},
    "forget-messages": {"task": "annotation.jobs.forget_messages", "schedule": 86_400.0},
    "forget-drafts": {"task": "annotation.jobs.forget_drafts", "schedule": 86_400.0},
}
if EMAIL_HOST or not PRODUCTION:  # only then a worker takes messages from this queue
    sending = {"task": "annotation.jobs.send_messages", "schedule": 10.0, "options": {"expires": 10}}
    CELERY_BEAT_SCHEDULE["send-messages"] = sending
#: Minutes between publications of changed chain heads. 0: only by `publish_anchors`.
ANCHOR_MINUTES = environment.number("ANCHOR_MINUTES", 60)
if ANCHOR_MINUTES:
    CELERY_BEAT_SCHEDULE["publish-anchors"] = {
        "task": "evaluations.jobs.publish_anchors",
        "schedule": ANCHOR_MINUTES * 60.0,
        "options": {"expires": ANCHOR_MINUTES * 60},  # so only one message waits if the queue has no worker
    }

# --- Log -----------------------------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "config.log_formats.OneLineFormatter",
            "format": "{asctime} {levelname} {name}{request}: {message}",
            "style": "{",
        },
        "json": {"()": "config.log_formats.JsonFormatter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            #: Format of the log: `line` for text, or `json` for one JSON object on each line.
            "formatter": environment.choice("LOG_FORMAT", "line", "line json"),
            "stream": sys.stderr,
        },
    },
    #: Least level that is logged: `DEBUG`, `INFO`, `WARNING` or `ERROR`. The log goes to stderr, one line for each
    #: record.
    "root": {"handlers": ["stderr"], "level": environment.log_level("LOG_LEVEL")},
    "loggers": {
        # Django adds its own handlers to these; without this a record would be written twice.
        "django": {"handlers": [], "propagate": True},
        "django.server": {"handlers": [], "propagate": True},
        "gunicorn.error": {"handlers": [], "propagate": True},  # its processes use our format once they have loaded it
    },
}

# --- The human protocol --------------------------------------------------------------------------------------

#: How long an annotator keeps a slot without activity, in minutes, at least 1. The draft stays. A new value applies to
#: existing reservations from the next activity of their annotators.
LEASE_MINUTES = environment.number("LEASE_MINUTES", 60, least=1)
#: How long an annotator can undo a submit on the desk, in seconds. Until then the label exists only as a draft. 0: a
#: submit is final at once.
UNDO_SECONDS = environment.number("UNDO_SECONDS", 15)
#: How long an adjudicator keeps an open adjudication without activity, in minutes, at least 1. Then a colleague can
#: take over.
ADJUDICATION_MINUTES = environment.number("ADJUDICATION_MINUTES", 240, least=1)

# --- Judges --------------------------------------------------------------------------------------------------

#: Addresses of OpenAI-compatible endpoints: one address, which is named `default`, or `name=address` separated by
#: commas. The web servers, the workers and the shell that starts a run need the same value. A worker without it stops
#: the run: set it, then resume the run. The key of an endpoint is in `JUDGE_API_KEY_<NAME>` (name in capitals) or
#: in the file that `JUDGE_API_KEY_<NAME>_FILE` names. Keys are read for each call, and never stored or logged. Only
#: workers need the key; set it to `none` on web servers. The endpoint `maps` is no model: it answers rubric scripts
#: that ask for distances, as Google's Distance Matrix API does (`maps=https://maps.googleapis.com/maps/api`).
JUDGE_ENDPOINTS = environment.endpoints("JUDGE_ENDPOINTS")
#: Seconds without a heartbeat after which a worker counts as dead, and others take over its items.
JUDGE_SILENCE_SECONDS = environment.number("JUDGE_SILENCE_SECONDS", 60)
#: Folder of rubric scripts of Mind2Web-2, one `<task_id>.py` for each task. All judge workers and the web servers need
#: the same files. Scripts are code and run confined. Install only what you trust.
RUBRIC_SCRIPTS = environment.text("RUBRIC_SCRIPTS")

# --- Published heads of chains -------------------------------------------------------------------------------

#: A file that gets one line for each published chain head, best on a disk that this instance cannot rewrite. Its folder
#: must exist. The judge worker publishes and needs this variable, as `publish_anchors` does.
ANCHOR_FILE = environment.text("ANCHOR_FILE")
#: An http or https address that gets the same line by POST. Redirects are not followed. User name, password, path and
#: query can be secret: only scheme and host are stored, and bundles have neither.
ANCHOR_WEBHOOK = environment.address("ANCHOR_WEBHOOK")
#: The address of a time stamp authority (RFC 3161).
ANCHOR_TIME_STAMP = environment.address("ANCHOR_TIME_STAMP")
#: The name of the webhook in evidence bundles, such as `log of the leaderboard`. It tells auditors where to ask. The
#: web servers and `export_evidence` need it.
ANCHOR_WEBHOOK_NAME = environment.text("ANCHOR_WEBHOOK_NAME", "webhook")
#: The name of the time stamp authority in evidence bundles.
ANCHOR_TIME_STAMP_NAME = environment.text("ANCHOR_TIME_STAMP_NAME", "time stamp authority")

# --- Monitoring ----------------------------------------------------------------------------------------------

#: Token of `/metrics` (header `Authorization: Bearer`), at least 16 characters. Without it, the address does not exist.
METRICS_TOKEN = environment.token("METRICS_TOKEN")

environment.raise_faults()
if SENTRY_DSN:
    from config import error_reports

    error_reports.start(SENTRY_DSN, versions.VERSION)
