"""The predictions of a judge of actions, for the scripts of maintainers."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from annotation import access as people_access
from annotation.access import Role
from annotation.api.base import Request, View
from annotation.api_tokens import Scope
from judges import access, predictions


class PredictionFilters(serializers.Serializer):
    judge = serializers.CharField(max_length=100, help_text="A judge of actions by its name, or name@version.")
    each = serializers.BooleanField(required=False, help_text="Also every prediction, and not only the numbers.")


class Predictions(View):
    """What a judge of actions predicted in a submission: numbers, groups, and with ``each`` every prediction."""

    scopes = {"GET": Scope.READ}
    serializer_class = serializers.Serializer
    filters = PredictionFilters

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, pk: int) -> Response:
        submission = people_access.submission_for(request.user, pk, Role.MAINTAINER)
        chosen, judges = self.chosen(), list(access.find_prediction_judges(request.user, submission))
        judge = next((one for one in judges if str(one) == chosen["judge"]), None)
        if judge is None:
            known = ", ".join(map(str, judges)) or "none"
            raise serializers.ValidationError({"judge": f"No such judge predicted actions here; known are: {known}."})
        found = predictions.compute_results(predictions.select_judgments(judge, submission))
        return Response(found.as_json(predictions=chosen.get("each", False)))
