(function () {
  "use strict";
  const form = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const groups = Array.from(document.querySelectorAll("section.file"), (section) => ({
    section,
    path: section.dataset.path.toLowerCase(),
    findings: Array.from(section.querySelectorAll(".finding")),
  }));
  const total = groups.reduce((sum, group) => sum + group.findings.length, 0);

  function apply() {
    const check = form.elements.check.value;
    const path = form.elements.path.value.trim().toLowerCase();
    const levels = new Set(Array.from(form.querySelectorAll("[name=level]:checked"), (box) => box.value));
    let count = 0;
    for (const group of groups) {
      let inGroup = 0;
      const isPath = group.path.includes(path);
      for (const finding of group.findings) {
        const data = finding.dataset;
        const isShown = isPath && (!check || data.check === check) && levels.has(data.level);
        finding.hidden = !isShown;
        inGroup += isShown ? 1 : 0;
      }
      group.section.hidden = inGroup === 0;
      count += inGroup;
    }
    shown.textContent = count === total ? total + " shown" : count + " of " + total + " shown";
  }

  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  apply(); // the browser may have kept what was chosen before a reload
})();
