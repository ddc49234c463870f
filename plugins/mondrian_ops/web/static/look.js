// Light or dark as Airflow is: it keeps what its user chose under this key. Loaded first, so that
// nothing is shown in the other look before.
"use strict";

(() => {
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  const apply = () => {
    let chosen = null;
    try {
      chosen = window.localStorage.getItem("theme");
    } catch {
      // A frame without access to Airflow's storage looks as the system does.
    }
    const dark = chosen === "dark" || (chosen !== "light" && system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    document.dispatchEvent(new CustomEvent("look"));
  };

  apply();
  system.addEventListener("change", apply);
  window.addEventListener("storage", apply);
})();
