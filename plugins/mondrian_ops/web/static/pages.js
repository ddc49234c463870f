// What the pages do beyond links and forms.
"use strict";

// Two releases, no more and no fewer, can be compared.
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

// A choice in the filter takes effect at once.
document.querySelectorAll("select[data-submit]").forEach((select) => {
  select.addEventListener("change", () => select.form.requestSubmit());
});
