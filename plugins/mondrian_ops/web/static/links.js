// Follows links to Airflow's own pages in the whole window. Airflow's frame does not let its
// content navigate the window, so the window gets a copy of the link and clicks it. The page loads
// this script before any link: a link followed in the frame would show Airflow inside Airflow.
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
