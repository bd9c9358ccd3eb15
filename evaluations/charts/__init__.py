"""Small charts: the geometry of inline SVG, drawn by the templates of ``templates/evaluations/charts``.

A function takes names and measures and returns a frozen dataclass; ``{% include chart.template with chart=chart %}``
draws it. No script and no plotting library, and everything can be told apart in black and white. Each chart says in
words what it shows (``description``); the table with the same numbers belongs behind it.
"""

from evaluations.charts.drawing import Chart
from evaluations.charts.grids import Grid, confusion, heat_map
from evaluations.charts.points import Calibration, Scatter, calibration, scatter
from evaluations.charts.rates import Rates, rates
from evaluations.charts.shares import Stacked, stacked
