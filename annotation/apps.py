from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class AnnotationConfig(AppConfig):
    default = True  # of the two configurations here
    name = "annotation"
    default_auto_field = "django.db.models.BigAutoField"


class OperatorAdminConfig(admin_apps.AdminConfig):
    default = False
    default_site = "annotation.operator_site.OperatorSite"
