"""The instance's own housekeeping. Labels and everything about them are not here: no back door around `access`."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from annotation.models import Agent, Benchmark, Person

admin.site.register(Person, UserAdmin)
admin.site.register(Benchmark)
admin.site.register(Agent)
