"""Lineage for OpenLineage: datasets by name, and a release's columns, sources and treatment.

This module needs the OpenLineage client. Only a method that the OpenLineage provider calls imports
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attr
from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    DatasetFacet,
    column_lineage_dataset,
    output_statistics_output_dataset,
    schema_dataset,
    tags_dataset,
)

from mondrian_ops.stores.places import place_of

FACET = "mondrian_ops_anonymization"
ROLE = "mondrian_ops_role"

_PRIVACY = (
    *("k", "entity_id", "l", "diversity", "c", "l_width", "missing_sensitive", "t", "t_distance"),
)


@attr.define(kw_only=True)
class AnonymizationDatasetFacet(DatasetFacet):
    """How a dataset was anonymized, and its loss and risk.

    ``privacyModel`` holds the job's requirements, ``achieved`` what the files as written satisfy.
    ``columns`` are the source's, by role.
    """

    privacyModel: dict[str, Any]  # noqa: N815 - the style of OpenLineage
    achieved: dict[str, Any]
    algorithm: str
    columns: dict[str, list[str]]
    metrics: dict[str, float]
    risk: dict[str, float]
    suppressedRows: int  # noqa: N815
    approvedBy: str | None = None  # noqa: N815


@attr.define
class _Column:
    """A published column: its source column, that column's role, and its treatment."""

    name: str
    source: str
    role: str
    treatment: str
    is_masked: bool


def names_of(
    inputs: Iterable[str | None], outputs: Iterable[str | None] = ()
) -> OperatorLineage[Any, Any]:
    """The lineage of a task that reads and writes these locations, before there is a report."""
    return OperatorLineage(
        inputs=[
            InputDataset(*place_of(str(location)).lineage_name(str(location)))
            for location in inputs
        ],
        outputs=[
            OutputDataset(*place_of(str(location)).lineage_name(str(location)))
            for location in outputs
        ],
    )


def lineage_of(report: Mapping[str, Any]) -> OperatorLineage[Any, Any]:
    """The lineage of the release that has this report."""
    job = report["job"]
    source = place_of(job["input"]).lineage_name(job["input"])
    columns = list(_columns(report))
    release = OutputDataset(
        *place_of(job["output"]).lineage_name(job["output"]),
        facets={
            "schema": schema_dataset.SchemaDatasetFacet(
                fields=[
                    schema_dataset.SchemaDatasetFacetFields(
                        name=column.name, description=f"{column.role}, {column.treatment}"
                    )
                    for column in columns
                ]
            ),
            "columnLineage": _column_lineage(columns, source),
            "tags": _tags([(column.name, column.role) for column in columns], "published"),
            FACET: _anonymization(report),
        },
        outputFacets={
            "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=report["rows"]["published"], fileCount=report["verification"]["files"]
            )
        },
    )
    roles = [(name, role) for role, names in _roles(report).items() for name in names]
    return OperatorLineage(
        inputs=[InputDataset(*source, facets={"tags": _tags(roles, "raw")})], outputs=[release]
    )


def _roles(report: Mapping[str, Any]) -> dict[str, list[str]]:
    columns = report["columns"]
    return {
        "direct identifier": list(columns["identifiers"]),
        "quasi-identifier": list(columns["quasi_identifiers"]),
        "sensitive": list(columns["sensitive"]),
        "unlisted": [*columns["unlisted"], *columns.get("index", ())],
    }


def _columns(report: Mapping[str, Any]) -> Iterator[_Column]:
    columns, attributes = report["columns"], report["attributes"]
    bounds = report["job"].get("interval_style") == "bounds"
    for name in columns["identifiers"] if columns["identifier_policy"] == "redact" else ():
        yield _Column(name, name, "direct identifier", "redacted", True)
    for name, attribute in attributes.items():
        treatment = f"generalized by {attribute['generalization']}"
        is_split = bounds and attribute["generalization"] == "interval"
        for end in ("_min", "_max", "_hidden") if is_split else ("",):
            yield _Column(name + end, name, "quasi-identifier", treatment, True)
    for name in columns["sensitive"]:
        yield _Column(name, name, "sensitive", "published as it is", False)
    for name in columns["unlisted"] if columns["unlisted_policy"] == "publish" else ():
        yield _Column(name, name, "unlisted", "published as it is", False)


def _column_lineage(
    columns: list[_Column], source: tuple[str, str]
) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    def made_of(column: _Column) -> column_lineage_dataset.Fields:
        transformation = column_lineage_dataset.Transformation(
            type="DIRECT",
            subtype="TRANSFORMATION" if column.is_masked else "IDENTITY",
            description=column.treatment,
            masking=column.is_masked,
        )
        field = column_lineage_dataset.InputField(
            *source, field=column.source, transformations=[transformation]
        )
        return column_lineage_dataset.Fields(inputFields=[field])

    return column_lineage_dataset.ColumnLineageDatasetFacet(
        fields={column.name: made_of(column) for column in columns}
    )


def _tags(roles: list[tuple[str, str]], state: str) -> tags_dataset.TagsDatasetFacet:
    tags = [
        tags_dataset.TagsDatasetFacetFields(key=ROLE, value=role, source="MONDRIAN_OPS", field=name)
        for name, role in roles
    ]
    whole = tags_dataset.TagsDatasetFacetFields(
        key="mondrian_ops", value=state, source="MONDRIAN_OPS"
    )
    return tags_dataset.TagsDatasetFacet(tags=[whole, *tags])


def _anonymization(report: Mapping[str, Any]) -> AnonymizationDatasetFacet:
    job, added = report["job"], [each["key"] for each in report.get("criteria", ())]
    return AnonymizationDatasetFacet(
        privacyModel={key: job[key] for key in (*_PRIVACY, *added) if job.get(key) is not None},
        achieved=dict(report["achieved"]),
        algorithm=job["algorithm"],
        columns=_roles(report),
        metrics=dict(report["metrics"]),
        risk=dict(report["risk"]),
        suppressedRows=report["rows"]["suppressed"],
        approvedBy=(report.get("outcome") or {}).get("decided_by"),
    )
