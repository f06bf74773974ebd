"use strict";
(() => {
  for (const plot of document.querySelectorAll(".plot")) {
    const { from, to, left, right, width } = plot.dataset, first = Number(from), span = Number(to) - first;
    const image = plot.querySelector("img"), rule = document.createElement("div"), words = document.createElement("div");
    rule.className = "rule"; words.className = "words-at";
    let curves = null, began = null;
    const load = async () => {
      if (curves) return;
      curves = [];
      const found = await (await fetch(plot.dataset.plot)).json();
      curves = [{ name: found.name, steps: found.steps, losses: found.losses }, ...found.others];
    };
    const scale = () => image.clientWidth / Number(width);
    const area = () => ({ start: left * scale(), size: (width - left - right) * scale() });
    const x = (event) => event.clientX - image.getBoundingClientRect().left;
    const stepAt = (place) => { const { start, size } = area(); return first + Math.round(Math.min(1, Math.max(0, (place - start) / size)) * span); };
    const nearest = (steps, step) => {
      let low = 0, high = steps.length - 1;
      while (low < high) { const middle = (low + high) >> 1; if (steps[middle] < step) low = middle + 1; else high = middle; }
      return low && step - steps[low - 1] <= steps[low] - step ? low - 1 : low;
    };
    const own = (step) => { const steps = curves?.[0]?.steps; return steps?.length ? steps[nearest(steps, step)] : step; };
    const show = (event) => {
      const { start, size } = area(), here = Math.min(start + size, Math.max(start, x(event))), step = own(stepAt(here));
      rule.style.left = `${Math.min(here, began ?? here)}px`;
      rule.style.width = `${began === null ? 1 : Math.abs(here - began)}px`;
      const lines = (curves || []).filter((each) => each.steps.length).map((each) => {
        const at = nearest(each.steps, step), loss = each.losses[at];
        return `${each.name}: ${loss === null ? "not finite" : Number(loss.toPrecision(4))}${each.steps[at] === step ? "" : ` (step ${each.steps[at].toLocaleString("en")})`}`;
      });
      words.textContent = [`step ${step.toLocaleString("en")}`, ...lines].join("\n");
      words.style.left = `${Math.min(here + 12, image.clientWidth - words.offsetWidth)}px`;
      plot.append(rule, words);
    };
    const hide = () => { rule.remove(); words.remove(); began = null; };
    const lead = (changes) => {
      const address = new URL(location.href);
      for (const [key, value] of Object.entries(changes)) address.searchParams.set(key, value);
      location.assign(address.href);
    };
    plot.addEventListener("pointerenter", load);
    plot.addEventListener("pointermove", show);
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("pointerdown", (event) => { if (event.button === 0) { event.preventDefault(); load(); began = x(event); } });
    plot.addEventListener("pointerup", (event) => {
      if (began === null) return;
      const [low, high] = [began, x(event)].sort((a, b) => a - b);
      began = null;
      if (high - low < 5) lead({ at: own(stepAt(low)) });
      else if (stepAt(high) > stepAt(low)) lead({ from: stepAt(low), to: stepAt(high) });
    });
  }
})();
