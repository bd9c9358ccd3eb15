"""Agreement of judges with final human verdicts, and of judges with each other.

`find_judgments` loads a judge's judgments, `compare` compares one judge with people, `versus` two judges with each
other, `standings` ranks the agents, and `attempts` combines the attempts of each agent. Judgments come from runs that
are not tests, or from an import.
"""

from evaluations.comparison.agent_pairs import COMPARED, Group, PairedCounts, TaskPair, count_groups, match_tasks
from evaluations.comparison.attempts import Attempts, attempts
from evaluations.comparison.evidence import cited_steps
from evaluations.comparison.judges import compare, differences
from evaluations.comparison.judgments import find_judgments, link_trajectories, list_judges
from evaluations.comparison.leave_one_out import ceiling_left_out
from evaluations.comparison.places import agent_pairs, places
from evaluations.comparison.results import (
    GROUPS,
    AgentPair,
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
