/** The graph that LinkBench begins with: how many links each node has, where they lead, and what lies in them. */

import { Stream } from "../random/stream.ts";
import type { InitialRow } from "../workload.ts";
import { DEGREES, FIRST_TIME, LINK_TYPES, SIZES, TIME_SPAN } from "./parameters.ts";
import { Link, LinkCount, LinkNode } from "./store.ts";

const SEED = 20_343_988;
const TEXT_BYTES = SIZES.mostNode + 256;

/** Texts without a meaning, cut from one long one. */
export class LinkTexts {
  readonly #text: string;

  constructor() {
    const stream = new Stream(SEED, 1);
    let text = "";
    while (text.length < TEXT_BYTES) text += stream.next().toString(36);
    this.#text = text;
  }

  of(bytes: number, variant: number): string {
    const from = variant & 0xff;
    return this.#text.slice(from, from + bytes);
  }
}

/** A size drawn from a log-normal distribution. */
export function drawSize(stream: Stream, median: number, most: number): number {
  // Box and Muller.
  const normal =
    Math.sqrt(-2 * Math.log(1 - stream.unit())) * Math.cos(2 * Math.PI * stream.unit());
  return Math.min(most, Math.max(1, Math.round(median * Math.exp(SIZES.sigma * normal))));
}

/** The links of each node, by id from 1 on. */
export function drawDegrees(nodes: number): Uint16Array {
  const stream = new Stream(SEED, 2);
  const degrees = new Uint16Array(nodes + 1);
  for (let id = 1; id <= nodes; id++) degrees[id] = Math.min(degreeAt(100 * stream.unit()), nodes);
  return degrees;
}

function degreeAt(percent: number): number {
  let point = 0;
  while (percent > DEGREES[point][1]) point++;
  if (point === 0) return 0;
  const [from, low] = DEGREES[point - 1];
  const [to, high] = DEGREES[point];
  return Math.round(from + ((to - from) * (percent - low)) / (high - low));
}

/** Where the link with a number leads: targets follow their source, so it is known which exist. */
export function targetOf(id1: number, number: number): number {
  return id1 + 1 + number;
}

/** The links of a type that a node with so many begins with. */
export function linksOfType(degree: number, type: number): number {
  return Math.floor((degree + LINK_TYPES - 1 - type) / LINK_TYPES);
}

export function* linkRows(nodes: number, degrees: Uint16Array): Iterable<InitialRow> {
  const texts = new LinkTexts();
  const stream = new Stream(SEED, 3);
  for (let id = 1; id <= nodes; id++) {
    const data = texts.of(drawSize(stream, SIZES.node, SIZES.mostNode), id);
    yield { table: LinkNode, row: { id, version: 1, time: FIRST_TIME, data } };
  }
  for (let id1 = 1; id1 <= nodes; id1++) {
    for (let number = 0; number < degrees[id1]; number++) {
      const time = FIRST_TIME + stream.below(TIME_SPAN);
      const data = texts.of(drawSize(stream, SIZES.link, SIZES.mostLink), number);
      const id2 = targetOf(id1, number);
      yield {
        table: Link,
        row: { id1, link_type: number % LINK_TYPES, id2, time, version: 1, data },
      };
    }
    for (let type = 0; type < LINK_TYPES; type++) {
      const links = linksOfType(degrees[id1], type);
      if (links > 0) yield { table: LinkCount, row: { id1, link_type: type, links } };
    }
  }
}
