"""The pages in a real Chromium, within a real Airflow: from the trigger form to the figures.

They come before the other tests of this Airflow, whose releases would stand in its list, too.

Pictures of what is seen are kept in the folder that ``MONDRIAN_OPS_SCREENSHOTS`` names; those of
``docs/report.md`` and ``docs/operate.md`` are made so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dag_runs import nested, parked, published, states
from mondrian_ops.catalogue import Catalogue, releases
from mondrian_ops.report import number_format
from releases import (
    SERIES,
    entry,
    entry_id,
    keep,
    keep_entry,
    keep_series,
    night,
    report_of,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, FrameLocator, Page

pytestmark = [pytest.mark.airflow, pytest.mark.browser, pytest.mark.postgres]

WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
MANY = 120
# Airflow keeps what its user chose; an empty frame of a browser keeps nothing.
LOOK = "try { localStorage.theme ??= 'LOOK' } catch {}"
# What differs there are colours.
IN_THE_DARK = pytest.param("dark", marks=pytest.mark.soak)
REASON = "k: 3 of 22 classes have fewer than 5 rows"


@pytest.fixture(scope="module")
def catalogue(project) -> Catalogue:
    """Forty nights of a made-up dataset, the last with drift, and a refused release."""
    catalogue = Catalogue(project.place)
    name = keep_series(catalogue, 40)
    for number in range(40):
        of_series = {"name": name, "night": number + 1}
        keep(catalogue, number, report={**night(number), "series": of_series})
    keep_entry(catalogue, entry(40, state="refused", reason=REASON, dataset="out/visits"))
    return catalogue


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--force-color-profile=srgb"]
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=options
        )
        yield chromium
        chromium.close()


Visit = Callable[..., "BrowserContext"]


@pytest.fixture
def visit(browser, project) -> Iterator[Visit]:
    """Visit Airflow as somebody, or as nobody."""
    visits = []

    def start(user: str = "", screen: dict[str, int] = WIDE, look: str = "light") -> BrowserContext:
        context = browser.new_context(
            base_url=project.airflow.url,
            viewport=screen,
            color_scheme="light",
            locale="en-GB",
            reduced_motion="reduce",  # to draw it takes most of the time
        )
        context.add_init_script(LOOK.replace("LOOK", look))
        visits.append(context)
        if user:
            answer = context.request.post(
                "/auth/token", data={"username": user, "password": project.password}
            )
            token = answer.json()["access_token"]
            context.add_cookies([{"name": "_token", "value": token, "url": project.airflow.url}])
        return context

    yield start
    for context in visits:
        context.close()


@pytest.fixture(scope="module")
def shots(tmp_path_factory) -> Path:
    """Where pictures of what is seen are kept."""
    folder = Path(os.environ.get("MONDRIAN_OPS_SCREENSHOTS") or tmp_path_factory.mktemp("shots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def framed(page: Page) -> FrameLocator:
    """What Airflow's page shows in its frame."""
    return page.frame_locator("iframe[title=Anonymization]")


def watched(page: Page) -> list[str]:
    """What the browser complains about from here on: scripts that fail, what a policy forbids."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda said: (
            complaints.append(said.text)
            if said.type == "error"
            and "mondrian_ops" in (said.location or {}).get("url", said.text)
            else None
        ),
    )
    return complaints


def drawn(where: Page | FrameLocator) -> None:
    """Look at every chart of a page; each must be drawn."""
    charts = where.locator("svg.chart")
    charts.first.wait_for()
    for at in range(charts.count()):
        charts.nth(at).scroll_into_view_if_needed()
        box = charts.nth(at).locator(".mark").first.bounding_box()
        assert box is not None and box["height"] > 0


def answer(page: Page, option: str) -> None:
    """Answer a question on its page, and leave that: it asks the server again and again."""
    with page.expect_response(
        lambda told: told.request.method == "PATCH" and "hitlDetails" in told.url
    ):
        page.get_by_role("button", name=option).click()
    page.goto("about:blank")


def test_from_the_form_to_the_figures_of_the_release(project, visit, shots):
    page = visit("ada").new_page()
    complaints = watched(page)
    job = project.job("form")
    page.goto("/dags/mondrian_anonymize")
    page.get_by_role("button", name="Trigger").first.click()
    page.locator("[name=element_k]").fill("7")
    page.locator("[name=element_l]").fill("3")
    page.locator("#element_output").fill(job["output"])
    page.screenshot(path=shots / "form.png")
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    page.wait_for_url(re.compile("/dags/mondrian_anonymize/runs/"))
    run_id = project.airflow.request("GET", "/api/v2/dags/mondrian_anonymize/dagRuns")["dag_runs"]
    (run_id,) = [each["dag_run_id"] for each in run_id]
    assert project.airflow.finish("mondrian_anonymize", run_id) == "success"

    page.get_by_role("link", name="Anonymization").last.click()
    release = framed(page)
    release.locator("h1", has_text="form/release").wait_for()
    report = json.loads((Path(job["output"]) / "_report.json").read_text())
    assert (report["job"]["k"], report["job"]["l"]) == (7, 3)
    asked = release.locator("#requirements tbody tr")
    for row, (key, name) in enumerate((("k", "k-anonymity"), ("l", "l-diversity"))):
        cells = asked.nth(row).locator("th, td").all_inner_texts()
        achieved = report["achieved"][key]
        reached = min(achieved.values()) if isinstance(achieved, dict) else achieved
        assert cells[0] == name
        assert cells[1:3] == [
            number_format.number(report["job"][key]),
            number_format.number(reached),
        ]
        assert "met" in cells[3]
    seen = dict(
        zip(
            release.locator("#figures dt").all_inner_texts(),
            release.locator("#figures dd:not(.soft)").all_inner_texts(),
            strict=True,
        )
    )
    assert seen["Rows published"] == number_format.number(report["rows"]["published"])
    assert seen["Classes"] == number_format.number(report["equivalence_classes"])
    assert seen["Information lost (GCP)"] == number_format.percent(report["metrics"]["GCP"])
    assert seen["Discernibility (DP)"] == number_format.number(report["metrics"]["DP"])
    assert seen["Highest risk"] == number_format.percent(report["risk"]["prosecutor_max"])
    drawn(release)
    names = set(report["attributes"])
    loss = release.locator("#information-lost-per-quasi-identifier tbody th")
    assert set(loss.all_text_contents()) == names
    with page.expect_download() as download:
        release.get_by_role("link", name="Report as JSON").click()
    assert json.loads(Path(download.value.path()).read_text()) == report
    page.screenshot(path=shots / "run.png")
    assert complaints == []


@pytest.fixture(scope="module")
def waiting(project) -> dict[str, str]:
    """Runs whose releases wait for an answer, by name."""
    jobs = {
        name: nested(project.job(name, require_approval=True, unlisted="publish"), fragments=1)
        for name in ("approved", "rejected")
    }
    runs = {name: project.airflow.trigger("approved", job) for name, job in jobs.items()}
    for run_id in runs.values():
        parked(project.airflow, "approved", run_id)
    return runs


def test_a_release_is_approved_under_required_actions(project, visit, shots, waiting):
    output, run_id = project.output("approved"), waiting["approved"]
    page = visit("ada").new_page()
    complaints = watched(page)
    page.goto("/required_actions?response_received=false")
    page.get_by_role("link", name=f"Publish {output}?").click()
    page.wait_for_url(re.compile("/tasks/wrap_up/required_actions"))
    page.get_by_role("cell", name="k-anonymity").wait_for()
    report = json.loads(next(output.parent.glob(".*/release/_report.json")).read_text())
    asked = {
        cells[0]: cells[1:]
        for row in page.get_by_role("row").all()
        if (cells := row.get_by_role("cell").all_inner_texts())
    }
    assert asked["k-anonymity"] == ["5", number_format.number(report["achieved"]["k"])]
    assert asked["Rows"] == ["2,000 of 2,000, 0 suppressed"]
    assert asked["Information lost (GCP)"] == [number_format.percent(report["metrics"]["GCP"])]
    raw = page.get_by_text("The job publishes 3 columns raw").first.inner_text()
    assert raw.startswith("The job publishes 3 columns raw (unlisted: publish): ")
    assert "occupation, visit_date" in raw
    page.screenshot(path=shots / "approval.png")
    link = page.get_by_role("link", name="The release").get_attribute("href")
    assert link.startswith("/plugin/")

    answer(page, "Approve")
    assert project.airflow.finish("approved", run_id) == "success"
    assert published(output) == 2000
    report = json.loads((output / "_report.json").read_text())
    told = report["outcome"]
    assert (told["state"], told["decision"], told["decided_by"]) == ("published", "approved", "ada")
    page.goto(f"/dags/approved/runs/{run_id}/tasks/wrap_up/details")
    page.get_by_role("link", name="Release", exact=True).click()
    page.wait_for_url(f"**{link}")
    release = framed(page)
    release.locator("h1", has_text="approved/release").wait_for()
    assert release.locator("header .state").inner_text() == "published"
    assert "approved by ada" in release.locator("#outcome").inner_text()
    assert complaints == []


def test_a_release_is_rejected_from_its_page(project, visit, waiting):
    run_id = waiting["rejected"]
    address = f"/plugin/anonymization/mondrian_ops/releases/{project.entry(run_id)['id']}"
    page = visit("ada").new_page()
    page.goto(address)
    assert framed(page).locator("header .state").inner_text() == "waiting"
    framed(page).get_by_role("link", name="Approve or reject").click()
    page.wait_for_url(re.compile("/tasks/wrap_up/required_actions"))
    answer(page, "Reject")
    project.airflow.finish("approved", run_id)
    ended = states(project.airflow.tasks("approved", run_id))
    for task in ("wrap_up", "needs_the_release", "always", "in_the_end"):
        assert ended[task, "skipped"] == 1
    assert ended["clean_up", "success"] == 1
    assert not project.output("rejected").exists()
    assert project.leftovers("rejected") == []
    page.goto(address)
    assert framed(page).locator("header .state").inner_text() == "rejected"
    assert "rejected by ada" in framed(page).locator("#outcome").inner_text()
    assert framed(page).get_by_role("link", name="Approve or reject").count() == 0


def test_the_list_stands_in_the_navigation(visit, catalogue, shots):
    page = visit("ada").new_page()
    complaints = watched(page)
    page.goto("/")
    page.get_by_role("link", name="Anonymization").first.click()
    listed = framed(page)
    listed.get_by_role("heading", name="Releases").wait_for()
    assert listed.locator("tr", has_text="out/visits").locator(".state").inner_text() == "refused"
    card = listed.locator(".dataset", has_text="out/people/*")
    assert card.locator(".drift").inner_text().startswith("loss +")
    drawn(listed)  # and so its scripts run, of which one submits the choice
    listed.get_by_label("DAG").select_option("mondrian_nightly")
    listed.get_by_text("41 releases").wait_for()
    drawn(listed)
    table = listed.locator(".scroll").evaluate("each => [each.scrollWidth, each.clientWidth]")
    assert table[0] <= table[1]
    listed.locator("h1").scroll_into_view_if_needed()
    page.screenshot(path=shots / "releases.png")

    listed.get_by_label("State").select_option("refused")
    listed.get_by_text("1 release.").wait_for()
    listed.get_by_role("link", name="Show all").click()
    listed.get_by_text("1 release.").wait_for(state="detached")
    listed.get_by_role("link", name="GCP").click()
    listed.locator("th[aria-sort=descending]", has_text="GCP").wait_for()
    listed.get_by_role("link", name="out/people/2025-02-09").first.click()
    listed.locator("h1", has_text="out/people/2025-02-09").wait_for()
    assert entry_id(39) in page.url
    page.reload()
    listed.locator("h1", has_text="out/people/2025-02-09").wait_for()
    drawn(listed)
    assert complaints == []


def test_a_dag_has_its_own_list(visit, catalogue):
    page = visit("ada").new_page()
    page.goto("/dags/mondrian_nightly")
    page.locator("a[href*='/dags/mondrian_nightly/plugin/']", has_text="Anonymization").click()
    framed(page).get_by_text("41 releases").wait_for()
    assert framed(page).get_by_label("DAG").input_value() == "mondrian_nightly"


def test_a_refused_release_says_why(visit, catalogue):
    page = visit("ada").new_page()
    page.goto(f"/mondrian_ops/releases/{entry_id(40)}")
    assert page.get_by_text(REASON).is_visible()


def test_two_releases_are_compared(visit, catalogue, shots):
    page = visit("ada").new_page()
    page.goto("/mondrian_ops/releases?dataset=out/people")
    button = page.get_by_role("button", name="Compare the chosen two")
    assert button.is_disabled()
    boxes = page.get_by_role("checkbox")
    boxes.nth(0).check()
    assert button.is_disabled()
    boxes.nth(1).check()
    button.click()
    page.get_by_role("heading", name="Two releases").wait_for()
    drawn(page)
    page.screenshot(path=shots / "compare.png", full_page=True)


def test_a_chart_can_be_walked_through_by_keyboard(visit, catalogue):
    page = visit("ada").new_page()
    page.goto(f"/mondrian_ops/releases/{entry_id(39)}")
    drawn(page)
    sizes = page.locator("#class-sizes svg.chart")
    sizes.focus()
    announced = page.locator("#announced")
    bars = number_format.bins(night(39)["class_sizes"], 5)
    for key, at in (("ArrowRight", 0), ("ArrowRight", 1), ("ArrowLeft", 0), ("ArrowLeft", -1)):
        sizes.press(key)
        bar = bars[at]
        assert announced.inner_text() == f"{bar.label} rows in a class: {bar.classes:,} classes"
        assert page.locator("#tip").inner_text() == announced.inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#class-sizes table").is_visible()


def test_a_chart_says_at_the_pointer_what_a_mark_stands_for(visit, catalogue):
    page = visit("ada").new_page()
    page.goto(f"/mondrian_ops/releases/{entry_id(39)}")
    page.locator("#class-sizes .mark").nth(2).hover()
    bar = number_format.bins(night(39)["class_sizes"], 5)[2]
    assert page.locator("#tip").inner_text().startswith(f"{bar.label} rows in a class")
    page.locator("h1").hover()
    assert page.locator("#tip").is_hidden()


def test_a_link_to_the_run_leads_the_whole_window_there(project, visit, catalogue):
    project.airflow.pause("mondrian_etl_example")
    run_id = project.airflow.queue("mondrian_etl_example")
    keep(catalogue, 60, dag_id="mondrian_etl_example", run_id=run_id, dataset="out/linked")
    page = visit("ada").new_page()
    page.goto(f"/plugin/anonymization/mondrian_ops/releases/{entry_id(60)}")
    framed(page).get_by_role("link", name=run_id).click()
    page.wait_for_url(re.compile("/dags/mondrian_etl_example/runs/"))
    assert page.locator("iframe").count() == 0


@pytest.mark.parametrize("look", ["light", "dark"])
def test_the_pages_look_as_airflow_does(visit, catalogue, shots, look):
    page = visit("ada", look=look).new_page()
    page.goto(f"/plugin/anonymization/mondrian_ops/releases/{entry_id(39)}")
    release = framed(page)
    release.locator("h1").wait_for()
    assert release.locator("html").get_attribute("data-theme") == look
    colour = "element => getComputedStyle(element).backgroundColor"
    assert release.locator("body").evaluate(colour) == page.locator("html").evaluate(colour)
    drawn(release)
    page.set_viewport_size({"width": WIDE["width"], "height": 1700})
    drawn(release)
    release.locator("h1").scroll_into_view_if_needed()
    page.screenshot(path=shots / f"release-{look}.png")


@pytest.mark.parametrize("look", ["light", IN_THE_DARK])
def test_a_series_is_shown_by_night(visit, catalogue, shots, look):
    page = visit("ada", look=look).new_page()
    complaints = watched(page)
    page.goto(f"/plugin/anonymization/mondrian_ops/releases/{entry_id(39)}")
    release = framed(page)
    release.get_by_role("link", name="The series, by night").click()
    release.locator("h1", has_text=SERIES).wait_for()
    page.set_viewport_size({"width": WIDE["width"], "height": 1400})
    drawn(release)
    release.locator("#rows-that-wait .mark").nth(9).hover()
    assert page.frames[-1].locator("#tip").inner_text().startswith("night 10, 2025-01-10: ")
    release.locator("h1").hover()
    page.screenshot(path=shots / f"series-{look}.png")
    assert complaints == []


def test_a_change_of_look_is_followed_at_once(visit, catalogue):
    page = visit("ada").new_page()
    page.goto(f"/plugin/anonymization/mondrian_ops/releases/{entry_id(39)}")
    release = framed(page)
    drawn(release)
    label = release.locator("#class-sizes svg text").first
    fill = "each => getComputedStyle(each).fill"
    before = label.evaluate(fill)
    page.evaluate("localStorage.setItem('theme', 'dark')")
    release.locator("html[data-theme=dark]").wait_for()
    assert label.evaluate(fill) != before


ONE_LOOK_EACH = {
    "releases?dag_id=mondrian_nightly": "dark",
    f"releases/{entry_id(39)}": "light",
    f"releases/{entry_id(39)}/series": "dark",
    f"compare?id={entry_id(38)}&id={entry_id(39)}": "light",
}


@pytest.mark.parametrize(
    ("path", "look"),
    [
        pytest.param(path, look, marks=() if look == one else pytest.mark.soak)
        for path, one in ONE_LOOK_EACH.items()
        for look in ("light", "dark")
    ],
)
def test_nothing_sticks_out_on_a_telephone(visit, catalogue, shots, path, look):
    page = visit("ada", screen=NARROW, look=look).new_page()
    page.goto(f"/mondrian_ops/{path}")
    drawn(page)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= NARROW["width"]
    name = path.partition("/")[0].partition("?")[0] + ("-one" if "/" in path else "")
    name += "-series" if path.endswith("series") else ""
    page.locator("h1").scroll_into_view_if_needed()
    page.screenshot(path=shots / f"narrow-{name}-{look}.png")


CONTRAST = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => {
      const s = c / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const isText = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!isText || !element.checkVisibility() || element.matches("script, :disabled")) continue;
    const style = getComputedStyle(element);
    const inChart = element.namespaceURI.endsWith("svg");
    if (inChart) continue;
    const [a, b] = [light(rgb(style.color)), light(behind(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(`${element.tagName} ${element.textContent}`);
  }
  return faint;
}
"""


@pytest.mark.parametrize("look", ["light", "dark"])
def test_all_text_stands_out_enough(visit, catalogue, look):
    page = visit("ada", look=look).new_page()
    for path in ("releases", f"releases/{entry_id(39)}", f"releases/{entry_id(40)}"):
        page.goto(f"/mondrian_ops/{path}")
        assert page.evaluate(CONTRAST) == []


def test_nobody_sees_anything(visit, catalogue, shots):
    context = visit()
    for path in ("releases", f"releases/{entry_id(1)}", f"releases/{entry_id(1)}/report.json"):
        answer = context.request.get(f"/mondrian_ops/{path}")
        assert answer.status == 401
        assert "people" not in answer.text()
    page = context.new_page()
    page.goto("/plugin/anonymization")
    page.wait_for_url(re.compile("/auth/login"))
    page.screenshot(path=shots / "anonymous.png")


def test_who_may_read_no_dag_sees_no_release(visit, catalogue, shots):
    context = visit("nora")
    page = context.new_page()
    answer = page.goto(f"/mondrian_ops/releases/{entry_id(1)}")
    assert answer.status == 404
    assert "people" not in page.content()
    page.screenshot(path=shots / "forbidden.png")
    page.goto("/mondrian_ops/releases")
    assert "people" not in page.content()
    assert page.get_by_text("Nothing has been released yet").is_visible()


def test_many_releases_can_be_listed_and_leafed_through(project, visit, catalogue):
    report = report_of()
    with catalogue.writing() as connection:
        for at in range(MANY):
            columns = entry(100 + at, report, dataset=f"out/many/{at:05d}")
            releases.keep(connection, columns, {})
    page = visit("ada").new_page()
    page.goto("/mondrian_ops/releases?dataset=out/many")
    assert page.get_by_text(f"{MANY:,} releases, page 1 of 3").is_visible()
    assert page.locator("table.releases tbody tr").count() == 50
    page.get_by_role("link", name="Older").click()
    page.get_by_text("page 2 of 3").wait_for()
    page.get_by_role("region", name="Releases").get_by_role("link", name="out/many/00069").click()
    page.locator("h1", has_text="out/many/00069").wait_for()
