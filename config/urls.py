"""All addresses of the application except /healthz and /readyz, which `config.health` answers earlier."""

from django.contrib import admin
from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from config.operation import operator
from evaluations.api.exporting import Nowhere

urlpatterns = [
    path("", include("annotation.urls")),
    path("", include("judges.urls")),
    path("", include("evaluations.urls")),
    path("api/v1/", include("annotation.api_urls")),
    path("api/v1/", include("judges.api_urls")),
    path("api/v1/", include("evaluations.api_urls")),
    path("api/schema", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="api-docs"),
    re_path(r"^api/(?P<rest>.*)$", Nowhere.as_view(), name="api-elsewhere"),
    path("admin/", admin.site.urls),
    path("operator", operator, name="operator"),
]

handler400 = "annotation.views.failures.bad_request"
handler403 = "annotation.views.failures.forbidden"
handler404 = "annotation.views.failures.not_found"
handler500 = "annotation.views.failures.server_error"
