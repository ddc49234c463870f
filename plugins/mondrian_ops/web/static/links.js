// Airflow's frame lets nothing inside it navigate the whole window, so a link to one of Airflow's
// own pages is followed by the window itself. Loaded before there is a link to click: followed
// within the frame, it would show Airflow inside of Airflow.
"use strict";

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-airflow]");
  if (link === null || window.parent === window || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const page = window.parent.document;
  const twin = page.createElement("a");
  twin.href = link.href;
  page.body.append(twin);
  twin.click();
  twin.remove();
});
