"""Settings that no environment variable changes, apart from `config.settings` for its length."""

from __future__ import annotations

from datetime import timedelta

from csp.constants import NONE, SELF

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
    "DEFAULT_GENERATOR_CLASS": "annotation.api.base.CachedSchemaGenerator",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    # Several models have a kind: without a name here, the schema would number them.
    "ENUM_NAME_OVERRIDES": {"ExpectationKind": "judges.models.Expectation.Kind"},
}
