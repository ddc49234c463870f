"""The table of figure 2 of De Capitani di Vimercati et al., and its hierarchy of countries."""

from __future__ import annotations

import pyarrow as pa

from mondrian_ops.data.hierarchy import Hierarchy

WORLD = Hierarchy.from_rows(
    [
        [country, region, "World"]
        for region, countries in {
            "Europe": ["Italy", "France", "Spain"],
            "North America": ["USA", "Canada", "Greenland"],
            "Asia": ["China", "Japan", "India"],
        }.items()
        for country in countries
    ],
    "countries.csv",
)
FIGURE_2 = pa.table(
    {
        "Age": [25, 25, 30, 42, 50, 43, 38, 38, 38],
        "Country": ["Italy", "Italy", "France", "China", "Japan", "China", "USA", "USA", "USA"],
        "TopSpeed": [132, 132, 126, 120, 128, 120, 135, 131, 135],
    }
)
