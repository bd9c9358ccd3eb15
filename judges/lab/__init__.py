"""Changes of a trajectory that leave what happened as it was, with which judges are tested. Does not use Django."""

from judges.lab.changing import VERSION, Expects, NotApplicable, Operator, change
from judges.lab.images import ChangedImage
from judges.lab.operators import OPERATORS

__all__ = ["OPERATORS", "VERSION", "ChangedImage", "Expects", "NotApplicable", "Operator", "change"]
