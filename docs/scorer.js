// How the search orders its results: a page that is about the word comes before pages that have it.
// Sphinx counts a word in the title of any section like one in the title of the page.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  // A result: page, title, anchor, description, score, file name.
  score: (result) => {
    const [page, title, anchor, , score] = result;
    const asked = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().split(/\s+/);
    const titles = title.toLowerCase();
    const isNamed = asked.some((word) => page.split("/").pop() === word);
    const isAbout = asked.every((word) => titles.includes(word));
    const isFirst = /^(howto\/|install|quickstart|tutorial|how-)/.test(page);
    const isApart = /^(design|from)\/|^(benchmarks|comparison|changelog)/.test(page);
    return score + (isNamed && !anchor ? 40 : 0) + (isAbout ? 20 : 0) + (isFirst ? 8 : 0) - (isApart ? 8 : 0);
  },
};
