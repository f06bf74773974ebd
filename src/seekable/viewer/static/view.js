"use strict";
(() => {
  const root = document.documentElement, body = document.body, up = body.dataset.up;
  const one = (what) => document.querySelector(what), all = (what) => [...document.querySelectorAll(what)];
  const kept = (key) => { try { return localStorage.getItem(key); } catch { return null; } };
  const keep = (key, value) => { try { localStorage.setItem(key, value); } catch { /* private windows keep nothing */ } };
  root.classList.add("js");

  const themes = ["auto", "light", "dark"];
  const theme = one("#theme");
  const setTheme = (name) => {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    theme.textContent = `Theme: ${name}`;
    for (const image of all(".chart img")) {
      const address = new URL(image.getAttribute("src"), location.href);
      address.searchParams.set("theme", name);
      image.src = address.href;
    }
    keep("seekable-theme", name);
  };
  theme.addEventListener("click", () => setTheme(themes[(themes.indexOf(kept("seekable-theme") || "auto") + 1) % 3]));
  if ((kept("seekable-theme") || "auto") !== "auto") setTheme(kept("seekable-theme"));

  const copyText = async (button, text) => {
    const label = button.textContent;
    if (label === "Copied") return;
    try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
    catch { prompt("Copy this", text); }
    setTimeout(() => { button.textContent = label; }, 1500);
  };
  const copy = () => {
    const button = one("#copy"), link = new URL(location.href);
    link.searchParams.delete("is");
    if (button.dataset.is) link.searchParams.set("is", button.dataset.is);
    return copyText(button, link.href);
  };
  for (const button of all("button[data-copy]")) button.addEventListener("click", () => copyText(button, button.dataset.copy));
  one("#copy").addEventListener("click", copy);

  const dialog = one("#keys"), switched = one("#keys-on");
  one("#keys-open").addEventListener("click", () => dialog.showModal());
  switched.checked = kept("seekable-keys") !== "off";
  switched.addEventListener("change", () => keep("seekable-keys", switched.checked ? "on" : "off"));

  let at = -1;
  const select = (step) => {
    const items = all(".item");
    if (!items.length) return;
    items[at]?.classList.remove("selected");
    at = Math.min(items.length - 1, Math.max(0, at + step));
    items[at].classList.add("selected");
    items[at].scrollIntoView({ block: "nearest" });
  };
  const follow = (what) => one(what)?.click();
  const media = () => one("audio, video");
  const keys = {
    j: () => select(1), k: () => select(-1), Enter: () => all(".item")[at]?.querySelector("a")?.click(),
    "[": () => follow("a[rel=prev]"), "]": () => follow("a[rel=next]"), b: () => (one("main a[rel=up]") || one(".brand")).click(),
    g: () => one("#go").focus(), "/": () => (one("#q") ? one("#q").focus() : follow(".tabs a[href$=search]")),
    a: () => follow("#all"), f: () => (one("#where") ? one("#where").focus() : follow(".tabs a[href$=rows]")),
    r: () => follow("a[rel=random]"), o: () => follow("a[rel=odd]"), c: copy, "?": () => dialog.showModal(),
    e: () => { const closed = all("main details:not([open])"); (closed.length ? closed : all("main details")).forEach((d) => { d.open = closed.length > 0; }); },
    m: () => follow("a[rel=alternate]"), w: () => root.classList.toggle("wrapped"),
    " ": () => { const m = media(); if (m) { m.paused ? m.play() : m.pause(); } return Boolean(m); },
    ",": () => { if (media()) media().currentTime -= 1; }, ".": () => { if (media()) media().currentTime += 1; },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || dialog.open || !switched.checked) return;
    if (event.target.closest("input, select, textarea, [contenteditable]")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.target.closest("a, button, summary, audio, video") && (event.key === "Enter" || event.key === " ")) return;
    const tab = /^[1-9]$/.test(event.key) && all(".tabs a")[event.key - 1];
    if (tab) { tab.click(); event.preventDefault(); return; }
    const act = Object.hasOwn(keys, event.key) && keys[event.key];
    if (act && act() !== false) event.preventDefault();
  });

  for (const button of all("button.png")) button.addEventListener("click", () => {
    const image = new Image();
    const address = new URL(button.dataset.of, location.href);
    address.searchParams.set("theme", "light");
    image.onload = () => {
      const canvas = document.createElement("canvas"), scale = 2;
      canvas.width = image.naturalWidth * scale; canvas.height = image.naturalHeight * scale;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => {
        const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: "chart.png" });
        link.click();
      });
    };
    image.src = address.href;
  });

  for (const part of all("[data-fetch]")) fetch(part.dataset.fetch).then((answer) => answer.text()).then((text) => {
    const found = new DOMParser().parseFromString(text, "text/html").querySelector("main .fragment");
    if (found) part.replaceChildren(...found.childNodes);
  }).catch(() => {});

  const gone = one("#gone");
  const say = (words) => { if (gone.textContent !== words) gone.textContent = words; gone.hidden = !words; };
  const ask = async (address) => {
    let answer;
    try { answer = await fetch(address, { cache: "no-store" }); } catch (error) {
      say("The viewer does not answer. It was ended, or the connection to its machine is closed. Start seekable view again, and open the link that it prints. This page stays as it was.");
      throw error;
    }
    say(answer.status === 403 ? "Another viewer answers at this address. Open the link that it printed." : "");
    return answer.text();
  };
  // While the work goes on, a part that has the focus stays as it is, but for its progress.
  const renew = (old, fresh, live) => {
    if (!fresh?.dataset.live) delete old.dataset.live;
    if (old.innerHTML === (fresh ? fresh.innerHTML : "")) return;
    if (!live || !fresh || !old.contains(document.activeElement)) { old.replaceChildren(...(fresh ? fresh.childNodes : [])); return; }
    const bar = old.querySelector("progress"), words = old.querySelector(".made");
    if (!bar || !fresh.querySelector("progress")) return;
    bar.value = fresh.querySelector("progress").value;
    words.textContent = fresh.querySelector(".made").textContent;
  };
  const again = () => ask(location.href).then((text) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    const live = page.querySelector("[data-live]");
    const state = page.querySelector("[data-state]"), said = one("[data-state]");
    const words = state ? state.textContent : "done";
    if (said && said.textContent !== words) said.textContent = words;
    for (const old of all("[data-job]")) renew(old, page.querySelector("[data-job]"), live);
    for (const old of all("[data-part]")) renew(old, page.querySelector(`[data-part=${old.dataset.part}]`), live);
    all(".item")[at]?.classList.add("selected");
    if (live) setTimeout(again, 500);
  }).catch(() => setTimeout(again, 3000));
  if (one("[data-live]")) setTimeout(again, 500);
  else setInterval(() => { if (!document.hidden) ask(`${up}icon.svg`).catch(() => {}); }, 5000);
})();
