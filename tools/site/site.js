// find returns the sections that hold every word of a query, those with the words in their titles first.
function find(index, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = (s) => {
    const title = (s.t + " " + s.p).toLowerCase(), all = title + " " + s.x.toLowerCase();
    if (!words.every((w) => all.includes(w))) return 0;
    return 1 + words.filter((w) => title.includes(w)).length * 2 + (s.u.includes("/guides/") ? 1 : 0);
  };
  return words.length ? index.map((s) => [rank(s), s]).filter(([r]) => r).sort((a, b) => b[0] - a[0]).slice(0, 20).map(([, s]) => s) : [];
}

if (typeof document !== "undefined") {
  const field = document.getElementById("search"), list = document.getElementById("hits");
  field.addEventListener("input", () => {
    const hits = find(index, field.value);
    list.hidden = !field.value.trim();
    list.replaceChildren(...(hits.length ? hits : [{ t: "nothing found", p: "", u: "" }]).map((s) => {
      const li = document.createElement("li"), a = document.createElement(s.u ? "a" : "span");
      if (s.u) a.href = field.dataset.root + s.u;
      a.textContent = s.p && s.p !== s.t ? s.p + " › " + s.t : s.t;
      li.append(a);
      return li;
    }));
  });
}
