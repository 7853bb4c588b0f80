// What pages of the console do beyond their HTML: follow new commits, and move by keys. Without it they still work.
(function () {
  "use strict";
  const root = document.body.dataset.root, event = document.body.dataset.event;
  const connection = document.getElementById("connection"), live = document.getElementById("live");
  const EVERY_MS = 30000, SOON_MS = 800;
  let seen = new Date(), isStreaming = false, timer = null;

  const clock = (time) => time.toISOString().slice(11, 19) + "Z";
  function state(isAnswered) {
    connection.classList.toggle("lost", !isAnswered);
    const how = isStreaming ? "follows new commits" : "is refreshed each 30 s";
    connection.textContent = isAnswered
      ? `This page ${how}; last at ${clock(seen)}.`
      : `The server has not answered since ${clock(seen)}: what you see may be out of date.`;
  }
  // The table is replaced; what a person types, and the row that has the focus, stay.
  async function refresh() {
    timer = null;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const focused = document.activeElement, row = focused && live.contains(focused) && focused.closest("tr");
      const href = focused && focused.getAttribute("href");
      for (const id of ["live", "live-currency"])
        document.getElementById(id).replaceChildren(...document.adoptNode(fresh.getElementById(id)).childNodes);
      const again = row && document.getElementById(row.id);
      const link = again && [...again.querySelectorAll("a")].find((each) => each.getAttribute("href") === href);
      if (link) link.focus();
      seen = new Date();
      state(true);
    } catch {
      state(false);
    }
  }
  function refreshSoon() {
    if (timer === null) timer = setTimeout(refresh, SOON_MS);
  }
  function revised(message) {
    if (JSON.parse(message.data).row.event_id !== event) return;
    const notice = document.getElementById("revised"), link = document.createElement("a");
    link.href = "";
    const what = message.type === "alerts" ? "The alert was revised" : "The conjunction was assessed anew";
    link.textContent = `${what}: show the newest.`;
    notice.replaceChildren(link);
    notice.hidden = false;
  }
  function follow() {
    const stream = new EventSource(`${root}events?feeds=alerts,conjunctions`);
    stream.onopen = () => { isStreaming = true; if (live) refreshSoon(); };
    stream.onerror = () => { isStreaming = false; };
    for (const feed of ["alerts", "conjunctions"]) stream.addEventListener(feed, live ? refreshSoon : revised);
    addEventListener("pagehide", () => stream.close());
  }
  if (live) {
    setInterval(refresh, EVERY_MS);
    state(true);
  }
  if (live || event) follow();

  // Who acts types a name once; with a login there is no such field.
  const by = document.querySelector("form.act input[name=by]");
  if (by) {
    by.value = by.value || localStorage.getItem("by") || "";
    by.form.addEventListener("submit", () => localStorage.setItem("by", by.value));
  }

  // The chosen filters are shown at once; the address has no empty ones.
  const form = document.getElementById("filters");
  if (form) {
    const send = () => {
      const chosen = [...new FormData(form)].filter(([name, value]) => value && !(name === "sort" && value === "level"));
      location.search = new URLSearchParams(chosen);
    };
    form.addEventListener("submit", (submitted) => { submitted.preventDefault(); send(); });
    form.addEventListener("change", (changed) => { if (changed.target.matches("select, [type=checkbox]")) send(); });
  }
  addEventListener("keydown", (pressed) => {
    if (pressed.ctrlKey || pressed.metaKey || pressed.altKey || pressed.target.matches("input, select, textarea")) return;
    const links = [...document.querySelectorAll("a.event")], at = links.indexOf(document.activeElement);
    const steps = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
    if (pressed.key === "/" && form) {
      form.elements.text.focus();
      pressed.preventDefault();
    } else if (pressed.key in steps && links.length && (at >= 0 || pressed.key.length === 1)) {
      links[Math.min(Math.max(at + steps[pressed.key], 0), links.length - 1)].focus();
      pressed.preventDefault();
    }
  });
})();
