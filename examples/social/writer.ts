/** A process that writes: its person posts, likes what is new in the feed, and deletes old posts with their edges. */

import { setTimeout } from "node:timers/promises";
import { open } from "situ";
import { feedOf, openSocial, write } from "./social.ts";

const PAUSE_MS = 120;
/** A person keeps so many posts. */
const KEPT = 20;
const TEXTS = ["Good morning", "Reading a paper", "It compiles", "Tests are green", "Tea"];

const [path, person] = process.argv.slice(2);
const db = await open({ path });
const social = openSocial(db);
const self = Number(person);
let isOver = false;
process.once("disconnect", () => {
  isOver = true;
});

for (let turn = 1; !isOver; turn++) {
  const text = `${TEXTS[turn % TEXTS.length]} (${turn}, from process ${process.pid})`;
  write(db, social, self, text, turn % 4 === 0);
  const [newest] = feedOf(social, self).posts.filter(({ id }) => !isOwn(id));
  if (newest !== undefined) like(newest.id);
  for (const { id2 } of social.assocRange(self, "wrote", KEPT, 100)) {
    await social.objDelete("post", id2);
  }
  await setTimeout(PAUSE_MS);
}
await db.close();

function isOwn(post: number): boolean {
  return social.assocGet(self, "wrote", post) !== undefined;
}

function like(post: number): void {
  try {
    social.assocAdd(self, "likes", post);
  } catch (error) {
    // Its author has just deleted it.
    if ((error as { code?: unknown }).code !== "SITU_MISSING") throw error;
  }
}
