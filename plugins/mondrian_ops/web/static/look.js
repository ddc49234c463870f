// Makes the page light or dark as Airflow is, which stores its user's choice under "theme". The
// page loads this script first, so that it never appears in the wrong look.
"use strict";

(() => {
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  const apply = () => {
    let chosen = null;
    try {
      chosen = window.localStorage.getItem("theme");
    } catch {
      // Without access to Airflow's storage the page follows the system.
    }
    const dark = chosen === "dark" || (chosen !== "light" && system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  };

  apply();
  system.addEventListener("change", apply);
  window.addEventListener("storage", apply);
})();
