/* What a page gains when scripts run. Nothing depends on it: every act is a plain link or form. */
"use strict";

(() => {
  const SHORTCUTS = "recourse.shortcuts";
  const DRAFT = "recourse.draft:";
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  /* --- times: the reader's zone, ages that tick, UTC on hover ------------- */

  const zone = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

  function age(seconds) {
    const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["s", 1];
    const count = Math.floor(Math.abs(seconds) / size);
    return seconds >= 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`;
  }

  function tellTimes(root = document) {
    for (const time of $$("time[datetime]", root)) {
      const moment = new Date(time.dateTime);
      const text = time.dataset.show === "age" ? age((Date.now() - moment) / 1000) : zone.format(moment);
      if (time.textContent !== text) time.textContent = text;
      if (!time.dataset.local) {
        time.dataset.local = "1";
        time.title = `${zone.format(moment)} here, ${time.title}`;
      }
    }
  }

  /* --- copy ---------------------------------------------------------------- */

  function offerCopies(root = document) {
    if (!navigator.clipboard) return;
    for (const button of $$("[data-copy]", root)) button.hidden = false;
  }

  async function copy(button) {
    await navigator.clipboard.writeText(button.dataset.copy);
    const said = button.getAttribute("aria-label");
    button.classList.add("copied");
    button.setAttribute("aria-label", "Copied");
    setTimeout(() => {
      button.classList.remove("copied");
      button.setAttribute("aria-label", said);
    }, 1500);
  }

  /* --- digests: recomputed here, over the very text that is shown ----------- */

  async function checkDigest(box) {
    if (!crypto.subtle) return;
    const text = new TextEncoder().encode(document.getElementById(box.dataset.digestOf).textContent);
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
    const hex = [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const same = hex === box.dataset.digest;
    box.dataset.tone = same ? "done" : "bad";
    box.textContent = same
      ? "Your browser computed the same digest over the text above."
      : "Your browser computed ANOTHER digest. Do not approve; tell an administrator.";
    box.hidden = false;
  }

  /* --- forms: sent once, and a typed reason is not lost ---------------------- */

  const draftKey = (field) => DRAFT + location.pathname + ":" + field.form.getAttribute("action") + ":" + field.name;

  function restoreDrafts(root = document) {
    for (const field of $$("textarea[data-draft]", root)) {
      const kept = sessionStorage.getItem(draftKey(field));
      if (kept && !field.value) field.value = kept;
    }
  }

  function forgetDrafts() {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(DRAFT)) sessionStorage.removeItem(key);
  }

  document.addEventListener("input", (event) => {
    if (event.target.matches("textarea[data-draft]")) sessionStorage.setItem(draftKey(event.target), event.target.value);
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || form.hasAttribute("hx-post")) return;
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = "1";
    /* After the browser has read the pressed button's name and value. */
    setTimeout(() => $$("button", form).forEach((button) => { button.disabled = true; }));
  });

  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    for (const form of $$("form[data-sent]")) {
      delete form.dataset.sent;
      $$("button", form).forEach((button) => { button.disabled = false; });
    }
  });

  /* --- the dialog -------------------------------------------------------------- */

  const dialog = () => document.getElementById("dialog");
  let opener = null;

  function openDialog() {
    if (!dialog().open) dialog().showModal();
    $("[autofocus], textarea, input:not([type=hidden]), button", dialog())?.focus();
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.target?.id === "dialog-body" && !dialog().open) opener = event.detail.elt.id;
  });

  document.addEventListener("close", (event) => {
    if (event.target.id === "dialog" && opener) document.getElementById(opener)?.focus();
  }, true);

  /* A list in use is left alone: no row moves under the pointer or the focus. */
  document.addEventListener("htmx:beforeRequest", (event) => {
    const list = event.detail.elt;
    if ("still" in list.dataset && (list.matches(":hover") || list.contains(document.activeElement))) event.preventDefault();
  });

  document.addEventListener("htmx:sendError", () => say("The server cannot be reached. Nothing was done; this page may be old."));
  document.addEventListener("htmx:responseError", (event) => say(`The server answered ${event.detail.xhr.status}. Nothing was done; load the page again.`));

  function say(text) {
    const line = document.getElementById("trouble");
    if (!line) return;
    $("[data-text]", line).textContent = text;
    line.hidden = false;
  }

  document.addEventListener("recourse:done", forgetDrafts);

  /* --- live parts: what was unfolded stays unfolded ------------------------------ */

  let unfolded = [];

  document.addEventListener("htmx:beforeSwap", (event) => {
    unfolded = $$("details[open][id]", event.detail.target).map((details) => details.id);
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "dialog-body") openDialog();
  });

  document.addEventListener("htmx:afterSettle", () => {
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
    unfolded = [];
    const line = document.getElementById("trouble");
    if (line) line.hidden = true;
    dress();
  });

  /* --- keyboard ---------------------------------------------------------------------- */

  const shortcutsOn = () => localStorage.getItem(SHORTCUTS) !== "off";
  const typing = (target) => target.matches("input, textarea, select, [contenteditable]");
  const rows = () => $$("[data-row]");

  function move(step) {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.classList.contains("current"));
    const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    all[at]?.classList.remove("current");
    next.classList.add("current");
    $("a", next)?.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  const KEYS = {
    "/": () => $("[data-search]")?.focus(),
    "?": () => $("[data-help]")?.click(),
    j: () => move(1),
    k: () => move(-1),
    Enter: () => $("[data-row].current a")?.click(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !shortcutsOn() || typing(event.target) || dialog()?.open) return;
    /* A focused link or button keeps its own Enter. */
    if (event.key === "Enter" && event.target !== document.body) return;
    if (!(event.key in KEYS)) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-shortcuts]")) localStorage.setItem(SHORTCUTS, event.target.checked ? "on" : "off");
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) {
      event.preventDefault();
      copy(button);
    }
    if (event.target.closest("[data-close]")) {
      event.preventDefault();
      dialog().close();
    }
    const tenants = document.getElementById("tenants");
    if (tenants?.open && !tenants.contains(event.target)) tenants.open = false;
  });

  /* --- everything above, for what is on the page now ----------------------------------- */

  function dress() {
    tellTimes();
    offerCopies();
    restoreDrafts();
    for (const box of $$("[data-digest-of]")) checkDigest(box);
    for (const element of $$("[data-script-only]")) element.hidden = false;
    for (const box of $$("[data-shortcuts]")) box.checked = shortcutsOn();
    if ($("[data-done]")) forgetDrafts();
  }

  dress();
  setInterval(tellTimes, 1000);
})();
