/**
 * The graph of a small social network: people who follow and block each other, posts, and who likes them. A feed and a
 * permission check are a few reads of it, and every process that has the store open does them by itself.
 */

import { bool, type Database, graph, str } from "situ";

export const openSocial = (db: Database) =>
  graph(db, {
    objects: {
      person: { name: str(40) },
      post: { text: str(280), friendsOnly: bool() },
    },
    associations: {
      follows: { from: "person", to: "person", inverse: "followedBy" },
      blocks: { from: "person", to: "person" },
      wrote: { from: "person", to: "post", inverse: "author" },
      likes: { from: "person", to: "post", inverse: "likedBy" },
    },
  });

export type Social = ReturnType<typeof openSocial>;

export const NAMES = ["Ada", "Grace", "Edsger", "Barbara", "Leslie", "Frances"];

/** Ids of people are given, so that all processes know them; posts get theirs from the graph. */
export const idOf = (name: string): number => NAMES.indexOf(name) + 1;

/** The first people, if nobody has added them. Everyone follows the next two. */
export function addPeople(db: Database, social: Social): void {
  db.transactSync((tx) => {
    const inside = social.in(tx);
    if (inside.objGet("person", 1) !== undefined) return;
    for (const name of NAMES) inside.objAdd("person", { name }, { id: idOf(name) });
    NAMES.forEach((name, i) => {
      for (const next of [1, 2]) {
        inside.assocAdd(idOf(name), "follows", idOf(NAMES[(i + next) % NAMES.length]));
      }
    });
  });
}

/** A post and the edge to its author: both, or neither. */
export function write(
  db: Database,
  social: Social,
  author: number,
  text: string,
  friendsOnly: boolean,
): number {
  return db.transactSync((tx) => {
    const inside = social.in(tx);
    const post = inside.objAdd("post", { text, friendsOnly });
    inside.assocAdd(author, "wrote", post);
    return post;
  });
}

/** Whether a person may see a post: of one who has not blocked them, and for friends only if the author follows them. */
export function maySee(
  social: Social,
  reader: number,
  author: number,
  friendsOnly: boolean,
): boolean {
  if (reader === author) return true;
  if (social.assocGet(author, "blocks", reader) !== undefined) return false;
  return !friendsOnly || social.assocGet(author, "follows", reader) !== undefined;
}

export interface FeedPost {
  readonly id: number;
  readonly author: string;
  readonly text: string;
  readonly friendsOnly: boolean;
  readonly time: number;
  readonly likes: number;
}

export interface Feed {
  readonly posts: readonly FeedPost[];
  /** Posts that the reader may not see. */
  readonly hidden: number;
}

const PEOPLE = 50;
const POSTS_OF_EACH = 10;
const POSTS = 12;

/** The newest posts of those whom a person follows, and the person's own. */
export function feedOf(social: Social, reader: number): Feed {
  const people = social.assocRange(reader, "follows", 0, PEOPLE).map(({ id2 }) => id2);
  const written = [reader, ...people].flatMap((author) =>
    social.assocRange(author, "wrote", 0, POSTS_OF_EACH).map(({ id2, time }) => ({
      author,
      post: id2,
      time,
    })),
  );
  written.sort((one, other) => other.time - one.time || other.post - one.post);
  const posts: FeedPost[] = [];
  let hidden = 0;
  for (const { author, post, time } of written) {
    if (posts.length === POSTS) break;
    const found = social.objGet("post", post);
    // Deleted since the list was read.
    if (found === undefined) continue;
    if (!maySee(social, reader, author, found.friendsOnly)) {
      hidden++;
      continue;
    }
    const name = social.objGet("person", author)?.name ?? "somebody";
    const likes = social.assocCount(post, "likedBy");
    posts.push({ id: post, author: name, ...found, time, likes });
  }
  return { posts, hidden };
}
