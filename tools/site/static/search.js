// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Searches the index that search_index.py has made. `search` needs no browser: Node runs it, too.
"use strict";

// Readers' words, and those that pages have for the same.
const ALSO = {
  "speed up": ["faster", "fast", "tune"], speedup: ["faster", "fast", "tune"], optimize: ["faster", "tune"],
  slow: ["faster", "tune"], performance: ["fast", "speed", "tune"], ncu: ["nsight"], nsys: ["nsight"],
  install: ["wheel"], benchmark: ["do_bench", "measure"], error: ["wrong"], wrong: ["debugging"],
};
const STOP = new Set("a an and are as at be by can do for how i in is it my of on or the to what why with".split(" "));

const TEXT = 2; // what a hit in running text counts

const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];

function stem(word) {
  const short = word.replace(/(ings?|ers?|ed|es|e|s)$/, "");
  return short.length >= 3 ? short : word;
}

// How well a word of a page is the one that was asked for: 0 to 1.
function likeness(word, asked) {
  if (word === asked) return 1;
  if (stem(word) === stem(asked)) return 0.8;
  return asked.length >= 3 && word.startsWith(asked) ? 0.4 : 0;
}

// What is asked for: groups of phrases of which one has to be there, with what each counts.
function groupsOf(query) {
  let words = wordsOf(query.replace(/\b(tl|tessera(\.language)?)\./g, " "));
  const groups = [];
  for (const phrase of Object.keys(ALSO).filter((one) => one.includes(" "))) {
    const at = ` ${words.join(" ")} `.indexOf(` ${phrase} `);
    if (at >= 0) {
      groups.push([[phrase, 1], ...ALSO[phrase].map((other) => [other, 0.6])]);
      words = ` ${words.join(" ")} `.replace(` ${phrase} `, " ").trim().split(" ").filter(Boolean);
    }
  }
  const asked = words.filter((word) => !STOP.has(word));
  for (const word of asked.length || groups.length ? asked : words)
    groups.push([[word, 1], ...(ALSO[word] || []).map((other) => [other, 0.6])]);
  return groups;
}

// The fields of each part as numbers of words, and what a hit counts there. Made once for an index.
function prepare(index) {
  if (index.fields) return;
  index.vocabulary = new Map();
  const numbers = (text) => wordsOf(text).map((word) => {
    if (!index.vocabulary.has(word)) index.vocabulary.set(word, index.vocabulary.size);
    return index.vocabulary.get(word);
  });
  index.fields = index.parts.map(([page, anchor, heading, names, text]) => [
    [anchor.includes(".") ? numbers(heading.split(".").pop()) : [], 20], [numbers(names), 14],
    [numbers(heading), 7], [numbers(index.pages[page][1]), 7], [numbers(text), TEXT],
  ]);
}

// For each word of a phrase, the likeness of each word of the index.
const likesOf = (index, phrase) =>
  phrase.split(" ").map((asked) => [...index.vocabulary.keys()].map((word) => likeness(word, asked)));

// What a field adds to a part's score: more if the phrase is all of it; in text, by how often.
function hits(words, likes, counts) {
  let sum = 0, most = 0;
  for (let at = 0; at + likes.length <= words.length; at++) {
    let like = 1;
    for (let i = 0; i < likes.length && like; i++) like *= likes[i][words[at + i]];
    sum += like;
    most = Math.max(most, like);
  }
  return counts === TEXT ? (counts * 3 * sum) / (sum + 2) : most * counts * (1 + 1 / (words.length || 1));
}

// The pages that have what is asked for, best first: path, title, and their best parts.
function search(index, query) {
  prepare(index);
  const groups = groupsOf(query);
  if (!groups.length) return [];
  const scores = groups.map((group) => {
    const phrases = group.map(([phrase, factor]) => [likesOf(index, phrase), factor]);
    const each = index.fields.map((fields) => Math.max(...phrases.map(([likes, factor]) =>
      // Another word for what was asked is not the name that was asked for.
      factor * fields.slice(factor < 1 ? 2 : 0).reduce((sum, [words, counts]) => sum + hits(words, likes, counts), 0))));
    const having = each.filter((score) => score > 0).length;
    return each.map((score) => score * Math.log(1 + index.parts.length / (1 + having)));
  });
  const pages = new Map();
  index.parts.forEach(([page, anchor, heading, , text], at) => {
    const missing = scores.filter((score) => !score[at]).length;
    if (missing === groups.length) return;
    const [path, title, weight] = index.pages[page];
    const score = scores.reduce((sum, one) => sum + one[at], 0) * weight * 0.25 ** missing;
    if (!pages.has(page)) pages.set(page, { path, title, score: 0, parts: [] });
    const found = pages.get(page);
    found.score = Math.max(found.score, score);
    found.parts.push({ anchor, heading, text, score });
  });
  const found = [...pages.values()].sort((a, b) => b.score - a.score);
  for (const page of found) page.parts.sort((a, b) => b.score - a.score);
  const least = found.length ? found[0].score * 0.02 : 0;
  return found.filter((page) => page.score > least);
}

// From here on, the page.

function excerpt(text, groups) {
  const asked = groups.flatMap((group) => group.flatMap(([phrase]) => phrase.split(" "))).filter((word) => word.length > 2);
  const pieces = text.split(/([\p{L}\p{N}_]+)/u);
  const isHit = (piece) => asked.some((word) => likeness(piece.toLowerCase(), word) > 0);
  const first = Math.max(pieces.findIndex(isHit), 0);
  const shown = document.createElement("p");
  const start = Math.max(first - 16, 0);
  if (start) shown.append("… ");
  for (const piece of pieces.slice(start, first + 60)) {
    if (!isHit(piece)) shown.append(piece);
    else shown.appendChild(document.createElement("mark")).textContent = piece;
  }
  if (first + 60 < pieces.length) shown.append(" …");
  return shown;
}

function link(path, text) {
  const made = document.createElement("a");
  made.href = path;
  made.textContent = text;
  return made;
}

function show(query, count) {
  const list = document.getElementById("found"), says = document.getElementById("search-says");
  const pages = search(searchIndex, query), groups = groupsOf(query);
  list.replaceChildren();
  says.textContent = query.trim() ? `${pages.length || "No"} page${pages.length === 1 ? "" : "s"}` : "";
  for (const page of pages.slice(0, count)) {
    const item = list.appendChild(document.createElement("li"));
    const [best] = page.parts;
    item.append(link(page.path, page.title));
    for (const part of page.parts.slice(0, 3).filter((one) => one.anchor && one.score > best.score / 2)) {
      const name = part.heading.replace(/^tessera\.([a-z_]+\.)*/, "");
      item.append(" · ", link(`${page.path}#${part.anchor}`, name));
    }
    item.append(excerpt(best.text, groups));
  }
  const more = document.getElementById("more");
  more.hidden = pages.length <= count;
  more.onclick = () => show(query, count + 10);
}

if (typeof document !== "undefined") {
  const box = document.getElementById("search-box");
  box.value = new URLSearchParams(location.search).get("q") || "";
  box.oninput = () => show(box.value, 10);
  show(box.value, 10);
  box.focus();
}
