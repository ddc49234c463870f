"""Every link leads to a page and a heading that exist, and every file that a page names exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(ROOT / "examples").glob("*.md")])
CODE = ("plugins", "dags", "scripts", "docker", "tests", "benchmarks")
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
NAMED = re.compile(
    r"`((?:benchmarks|dags|docker|examples|include|plugins|scripts|tests)/[\w./-]+)`"
)
MODULE = re.compile(r"`([a-z_]+/[a-z_0-9]+\.(?:py|c))`")


def text_of(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and GitLab make them."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def sources() -> Iterator[Path]:
    """The files of the repository that may name a page: code, settings and scripts."""
    yield from (path for path in ROOT.glob("*") if path.is_file() and path.name != ".env")
    for folder in CODE:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".c", ".h", ".sh", ".html", ".yaml", ".toml"}:
                yield path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_a_page_and_a_heading(page: Path) -> None:
    for target, anchor in LINK.findall(text_of(page)):
        if ":" in target:
            continue
        linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page.name} links to {target}#{anchor}"


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    package = ROOT / "plugins" / "mondrian_ops"
    assert not [name for name in NAMED.findall(text_of(page)) if not (ROOT / name).exists()]
    modules = {name for name in MODULE.findall(text_of(page)) if not NAMED.match(f"`{name}`")}
    assert not [name for name in modules if not (package / name).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_make_targets_that_a_page_names_exist(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = re.findall(r"(?:`|^)make ([a-z][a-z-]*)\b", page.read_text("utf-8"), re.MULTILINE)
    assert set(named) <= targets


def test_pages_that_code_and_settings_name_exist() -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources()
        for name in re.findall(r"\bdocs/[\w-]+\.md\b", path.read_text("utf-8"))
        if not (ROOT / name).exists()
    }
    assert not missing


def test_the_index_names_every_page() -> None:
    index = {target for target, _ in LINK.findall(text_of(DOCS / "README.md"))}
    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} <= index


def keys_of_reports() -> Iterator[str]:
    """The keys that the code gives a report: in one dict, and one by one."""
    package = ROOT / "plugins" / "mondrian_ops"
    for path in [*(package / "report").glob("*.py"), *(package / "pipeline").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Assign([ast.Subscript(ast.Name("report"), ast.Constant(str(key)))]):
                    yield key
                case ast.Assign([ast.Name("report")], ast.Dict() as content):
                    inner = [each for each in content.values if isinstance(each, ast.IfExp)]
                    for part in [
                        content,
                        *(side for each in inner for side in (each.body, each.orelse)),
                    ]:
                        yield from (key.value for key in getattr(part, "keys", []) if key)


def test_every_key_of_a_report_is_explained() -> None:
    keys = set(keys_of_reports())
    assert {"outcome", "published_raw", "source", "contract", "overlap"} <= keys
    page = (DOCS / "report.md").read_text("utf-8")
    explained = re.findall(r"^\| (`[^|]*`) \|", page, re.MULTILINE)
    assert keys <= {key for cell in explained for key in re.findall(r"`(\w+)`", cell)}


def test_messages_to_repair_are_those_of_the_code() -> None:
    """Code spans of the first column are pieces of our messages; `…` is what varies."""
    modules = sorted((ROOT / "plugins").rglob("*.py"))
    code = "".join(path.read_text("utf-8") for path in modules)
    code = re.sub(r"[\"']\s*\n\s*f?[\"']", "", code)  # a message goes on in the next line
    code = re.sub(r"\{[^{}]*\}", "…", code)
    cells = re.findall(r"^\| (.*?) \|", (DOCS / "repair.md").read_text("utf-8"), re.MULTILINE)
    pieces = [piece for cell in cells for span in re.findall(r"`([^`]+)`", cell)
              for piece in span.split("…")]  # fmt: skip
    assert len(pieces) > 20
    assert not [piece for piece in pieces if piece.strip() not in code]
