"""People: their columns, and the hierarchies that hold every value of theirs."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from mondrian_ops import stores
from mondrian_ops.datasets import people

HIERARCHIES = Path(__file__).resolve().parents[3] / "include" / "hierarchies"


class TestPeople:
    population = people(50_000, seed=4)

    def test_columns(self) -> None:
        assert {field.name: str(field.type) for field in self.population.schema} == {
            "name": "string",
            "age": "int16",
            "sex": "string",
            "zip": "string",
            "country": "string",
            "occupation": "string",
            "visit_date": "date32[day]",
            "income": "int32",
            "diagnosis": "string",
        }
        age, income = self.population["age"], self.population["income"]
        assert pc.min_max(age).as_py() == {"min": 18, "max": 95}
        assert pc.min(income).as_py() > 0
        assert pc.all(pc.match_substring_regex(self.population["zip"], r"^\d{5}$")).as_py()

    def test_some_values_are_missing(self) -> None:
        shares = {
            name: self.population[name].null_count / self.population.num_rows
            for name in self.population.column_names
        }
        gaps = {name for name, share in shares.items() if share}
        assert gaps == {"zip", "country", "occupation", "income", "diagnosis"}
        assert all(0.005 < shares[name] < 0.06 for name in gaps)

    @pytest.mark.parametrize(
        ("column", "file"),
        [
            ("country", "countries.csv"),
            ("occupation", "occupations.csv"),
            ("diagnosis", "diagnoses.csv"),
        ],
    )
    def test_the_hierarchies_hold_every_value(self, column: str, file: str) -> None:
        leaves = set(stores.read_hierarchy(str(HIERARCHIES / file)).leaves)
        assert set(self.population[column].drop_null().to_pylist()) <= leaves


@pytest.mark.parametrize("path", sorted(HIERARCHIES.glob("*.csv")), ids=lambda path: path.name)
def test_the_hierarchies_that_come_along_are_sound(path: Path) -> None:
    tree = stores.read_hierarchy(str(path))
    assert tree.labels[tree.root] == "*"
    assert len(tree.ancestors) == 4
    # Leaf order is the order of the attribute: what generalizes together stands together.
    assert tree.tree_order.tolist() == list(range(len(tree.leaves)))
    assert len(set(tree.labels)) == len(tree.labels)


def test_the_countries_of_the_world() -> None:
    tree = stores.read_hierarchy(str(HIERARCHIES / "countries.csv"))
    above = {
        leaf: [tree.labels[node] for node in tree.ancestors[1:, at]]
        for at, leaf in enumerate(tree.leaves)
    }
    assert above["Italy"] == ["Southern Europe", "Europe", "*"]
    assert above["Côte d'Ivoire"] == ["Western Africa", "Africa", "*"]
    assert len(above) > 230
    continents = {path[-2] for path in above.values()}
    assert continents == {"Africa", "Americas", "Asia", "Europe", "Oceania"}
