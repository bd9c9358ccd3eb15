"""Settings that no environment variable changes, apart from `config.settings` for its length."""

from __future__ import annotations

from datetime import timedelta

from csp.constants import NONE, SELF

FILE_UPLOAD_PERMISSIONS, FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o600, 0o700
FILE_UPLOAD_MAX_MEMORY_SIZE = 2_621_440  # bytes; anything larger streams to a temporary file
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024**2  # bytes of a request without its files
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2000

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "annotation.second_factor.CodeBackend",
]
PASSWORD_HASHERS = [
    "config.authentication.PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",  # of earlier versions: replaced when the person signs in
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "annotation.workflow.passwords.PersonalPassword"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "annotation.workflow.passwords.CommonPassword"},
]

MFA_ADAPTER = "annotation.second_factor.MfaAdapter"
MFA_TOTP_ISSUER = "WebVerdict"
MFA_TOTP_TOLERANCE = 1  # codes before and after the current one, for clocks that are up to 30 seconds wrong
ACCOUNT_ADAPTER = "annotation.sign_in_flow.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_ADAPTER = "annotation.single_sign_on.SocialAdapter"

# Few failures lock a pair of name and address. Many lock a name or an address, except in browsers that the person has
# used before. So the failures of a stranger lock out neither the person nor other people behind the same address.
AXES_HANDLER = "annotation.password_limits.PasswordLimitHandler"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_CALLABLE = "annotation.views.account.locked_out"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # a refused attempt checks no password, so it does not count
AXES_VERBOSE = False
AXES_DISABLE_ACCESS_LOG = True  # annotation.models.SignIn stores successful sign-ins
AXES_CLIENT_IP_CALLABLE = "config.client_address.limited_address"
# Failures are stored with the fields of their form, except these.
AXES_SENSITIVE_PARAMETERS = [
    "username",
    "ip_address",
    "email",
    "code",
    "credential",
    "old_password",
    "new_password1",
    "new_password2",
]

LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "/"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "blob:", "data:"],
        "connect-src": [SELF],
        "font-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "object-src": [NONE],
    },
}

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "annotation.api_tokens.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "annotation.api_tokens.ScopePermission",
    ],
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.PageNumberPagination",
    "PAGE_SIZE": 50,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "annotation.problem_details.handle",
    "URL_FORMAT_OVERRIDE": None,  # ?format= is an unknown parameter like any other, rejected after the sign-in
}
SPECTACULAR_SETTINGS = {
    "TITLE": "WebVerdict",
    "DESCRIPTION": "Upload submissions, follow their review, fetch final labels and exports.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,  # or the schema calls uploaded files addresses
    "DEFAULT_GENERATOR_CLASS": "annotation.api.base.CachedSchemaGenerator",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    # Several models have a kind: without a name here, the schema would number them.
    "ENUM_NAME_OVERRIDES": {
        "EntryState": "evaluations.registry.chain.State",
        "ExpectationKind": "judges.models.Expectation.Kind",
        "StateEnum": "annotation.api.serializers.STATES",
        "ReportKind": "annotation.models.Report.Kind",
        "WaitingKind": "annotation.queue.Kind",
        "GivenRole": "annotation.invitations.GIVEN_ROLES",
        "ReviewerRole": "annotation.api.people.REVIEWERS",
    },
}

CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A page that sends a message must answer soon even without a broker; jobs are queued again from their rows.
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0.1, "interval_step": 0, "interval_max": 0.1}
CELERY_RESULT_BACKEND = None  # the state of a job is in our tables
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_LOST_WAIT = 3.0  # seconds for the last messages of a killed pool process, before its job is sent again
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "webverdict"
# A judge run may take hours and mostly waits: it must not delay imports, so it has its own worker. The worker that
# reads uploads must not have access to the internet, so the judge worker publishes anchors.
CELERY_TASK_ROUTES = {
    "judges.jobs.work_on": {"queue": "webverdict-judges"},
    "evaluations.jobs.advance_alignment": {"queue": "webverdict-judges"},
    "evaluations.jobs.evaluate_look": {"queue": "webverdict-judges"},
    "evaluations.jobs.publish_anchors": {"queue": "webverdict-judges"},
    # A slice of a judge run takes minutes, and people wait for a link to set a password.
    "annotation.jobs.send_messages": {"queue": "webverdict-mail"},
    "annotation.jobs.send_webhooks": {"queue": "webverdict-mail"},
    "annotation.jobs.write_password_links": {"queue": "webverdict-mail"},
}
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
