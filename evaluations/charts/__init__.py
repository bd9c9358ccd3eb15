"""Small charts: the geometry of inline SVG, drawn by the templates of ``templates/evaluations/charts``.

A function takes names and measures and returns a frozen dataclass; ``{% include chart.template with chart=chart %}``
draws it. Charts need no script and no plotting library, and are readable in black and white. Each chart has a
``description`` in words; put the table with the same numbers after it.
"""

from evaluations.charts.drawing import Chart
from evaluations.charts.grids import Grid, confusion, heat_map
from evaluations.charts.points import Calibration, Scatter, calibration, scatter
from evaluations.charts.rates import Rates, rates
from evaluations.charts.shares import Stacked, stacked
