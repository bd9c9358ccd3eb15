"""How far people agree: on their blind labels before QA, and what QA made of them.

Bootstrap intervals rest on 2,000 resamples of the cases, 1,000 for groups and pairs and where tasks are drawn because
several agents did them, and always on the same seed, `measuring.SEED`: the same labels give the same figures on a page,
in a file and on a terminal.
"""

from evaluations.agreement.groups import CHOSEN_BY_LABELS, GROUPS
from evaluations.agreement.people import MOST_PAIRS
from evaluations.agreement.results import REASONS, Adjudications, Agreement, Annotator, Group, Informed, Pair
from evaluations.agreement.whole import agreement
