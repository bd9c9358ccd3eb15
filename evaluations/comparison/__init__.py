"""How far each judge can be trusted: judges against final human verdicts, and judges against each other.

`judged` finds what a judge says of each case, `compare` sets one judge beside people, `versus` two judges beside each
other, `standings` ranks the agents, and `attempts` puts the attempts of one together. Judgments come from runs that are
no tests, or from an import.
"""

from evaluations.comparison.attempts import Attempts, attempts
from evaluations.comparison.evidence import cited_steps
from evaluations.comparison.judges import compare, differences
from evaluations.comparison.judgments import find_judgments, link_trajectories, list_judges
from evaluations.comparison.results import (
    GROUPS,
    Average,
    Bin,
    Comparison,
    Costs,
    Difference,
    Judged,
    KeyPoints,
    Label2,
    Row,
    Standing,
    Versus,
)
from evaluations.comparison.rows import ceiling
from evaluations.comparison.standings import ranking, standings, versus
