/** What the browser gets: one page, which asks for a person's feed twice a second and shows what the answer cost. */

import { NAMES } from "./social.ts";

const options = NAMES.map((name, i) => `<option value="${i + 1}">${name}</option>`).join("");

export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Social</title>
<link rel="icon" href="data:,">
<style>
  :root { color-scheme: light dark; }
  body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 40rem; padding: 0 1rem; }
  form, .cost { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: 1rem 0; }
  input[name=text] { flex: 1; min-width: 12rem; }
  input, select, button { font: inherit; padding: .3rem .5rem; }
  ol { list-style: none; padding: 0; }
  li { border-top: 1px solid color-mix(in srgb, currentColor 25%, transparent); padding: .6rem 0; overflow-wrap: anywhere; }
  .about { font-size: .85rem; opacity: .8; }
</style>
</head>
<body>
<h1>Feed</h1>
<label>Read as <select id="reader">${options}</select></label>
<form id="write">
  <input name="text" maxlength="280" required placeholder="What is new?" aria-label="Text of a post">
  <label><input type="checkbox" name="friendsOnly"> friends only</label>
  <button>Post</button>
</form>
<p class="cost"><output id="cost">…</output></p>
<ol id="posts"></ol>
<script>
const reader = document.querySelector("#reader");
const posts = document.querySelector("#posts");
const cost = document.querySelector("#cost");
const form = document.querySelector("#write");

const say = (tag, text, name) => {
  const element = document.createElement(tag);
  element.textContent = text;
  if (name) element.className = name;
  return element;
};

let asked = 0;
async function show() {
  const turn = ++asked;
  const reply = await fetch("/feed?reader=" + reader.value);
  const { reader: name, feed, calls, microseconds } = await reply.json();
  if (turn !== asked) return;
  cost.value = calls + " calls of the graph in " + microseconds + " µs; " + feed.hidden + " posts hidden";
  posts.dataset.reader = name;
  posts.replaceChildren(...feed.posts.map((post) => {
    const item = document.createElement("li");
    item.dataset.author = post.author;
    item.append(say("strong", post.author), " ", say("span", post.text, "text"), say("div",
      (post.friendsOnly ? "friends only, " : "") + post.likes + (post.likes === 1 ? " like" : " likes"), "about"));
    return item;
  }));
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { text, friendsOnly } = form.elements;
  const body = JSON.stringify({ author: Number(reader.value), text: text.value, friendsOnly: friendsOnly.checked });
  await fetch("/posts", { method: "POST", headers: { "content-type": "application/json" }, body });
  form.reset();
  await show();
});
reader.addEventListener("change", show);
setInterval(show, 500);
show();
</script>
</body>
</html>
`;
