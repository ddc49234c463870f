// Choosing two releases, filtering at once, and the tooltips of charts.
"use strict";

// The button to compare works when exactly two releases are chosen.
const compare = document.getElementById("compare");
if (compare !== null) {
  const chosen = () => document.querySelectorAll("input[form=compare]:checked").length;
  const button = compare.querySelector("button");
  const update = () => {
    const count = chosen();
    button.disabled = count !== 2;
    compare.querySelector("output").textContent =
      count === 2 ? "" : `${count} of 2 releases chosen`;
  };
  document.addEventListener("change", update);
  update();
}

// A change of the filter submits it.
document.querySelectorAll("select[data-submit]").forEach((select) => {
  select.addEventListener("change", () => select.form.requestSubmit());
});

// Shows the title of a mark at the pointer or, by arrow keys, at the mark: browsers do so late.
const tip = document.getElementById("tip");

const show = (mark, x = 0, y = 0) => {
  document.querySelector(".mark.shown")?.classList.remove("shown");
  tip.hidden = mark === undefined;
  if (mark === undefined) return;
  mark.classList.add("shown");
  tip.textContent = mark.dataset.says;
  const below = y + 14 + tip.offsetHeight < window.innerHeight;
  tip.style.left = `${Math.max(4, Math.min(x + 12, window.innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${below ? y + 14 : y - 14 - tip.offsetHeight}px`;
};

document.querySelectorAll("svg.chart").forEach((chart) => {
  const marks = [...chart.querySelectorAll(".mark")];
  for (const mark of marks) {
    const title = mark.querySelector("title");
    mark.dataset.says = title.textContent;
    title.remove();
  }
  let at = -1;
  chart.setAttribute("tabindex", "0");
  chart.addEventListener("pointermove", (event) => {
    show(event.target.closest(".mark") ?? undefined, event.clientX, event.clientY);
  });
  chart.addEventListener("pointerleave", () => show());
  chart.addEventListener("blur", () => show());
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined || marks.length === 0) return;
    event.preventDefault();
    at = at < 0 ? 0 : (at + step + marks.length) % marks.length;
    const box = marks[at].getBoundingClientRect();
    show(marks[at], box.left + box.width / 2, box.top + box.height / 2);
    document.getElementById("announced").textContent = marks[at].dataset.says;
  });
});
