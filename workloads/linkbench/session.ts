/** A stream of LinkBench's or TAO's operations. All chance is drawn before the first of them. */

import type { Distribution } from "../random/distribution.ts";
import { Stream } from "../random/stream.ts";
import { Scattered, Zipfian } from "../random/zipfian.ts";
import { DONE, type Outcome, REFUSED, type Result, type Session, type Tally } from "../workload.ts";
import {
  EXISTS,
  FIRST_TIME,
  KINDS,
  LINK_TYPES,
  type LinkKind,
  MOST_MULTIGET,
  MULTIGET_P,
  SHAPES,
  SIZES,
  TAO_LIMIT,
  TIME_SPAN,
} from "./parameters.ts";
import { drawSize, LinkTexts, linksOfType, targetOf } from "./shape.ts";
import type { FoundLink, LinkStore } from "./store.ts";

/** What the sessions of one workload share. */
export interface LinkGraph {
  readonly nodes: number;
  readonly degrees: Uint16Array;
  readonly mix: Readonly<Record<LinkKind, number>>;
  readonly draws: number;
  readonly isTao: boolean;
  readonly limit: number;
  readonly popularity: Readonly<Record<keyof typeof SHAPES, Distribution>>;
}

export function popularities(nodes: number): LinkGraph["popularity"] {
  const of = (shape: number): Distribution => new Scattered(new Zipfian(nodes, shape));
  return {
    linkRead: of(SHAPES.linkRead),
    linkWrite: of(SHAPES.linkWrite),
    nodeRead: of(SHAPES.nodeRead),
    nodeUpdate: of(SHAPES.nodeUpdate),
  };
}

const kindNumber = (kind: LinkKind): number => KINDS.indexOf(kind);
const GET_NODE = kindNumber("get node");
const ADD_NODE = kindNumber("add node");
const UPDATE_NODE = kindNumber("update node");
const DELETE_NODE = kindNumber("delete node");
const DELETE_LINK = kindNumber("delete link");
const CHANGE_TYPE = kindNumber("change type");
const COUNT = kindNumber("count links");
const GET_LINKS = kindNumber("get links");
const GET_LIST = kindNumber("get list");
const GET_TIME_RANGE = kindNumber("get time range");
const UPDATE_LINK = kindNumber("update link");

export class LinkSession implements Session {
  drawn = 0;
  readonly #store: LinkStore;
  readonly #graph: LinkGraph;
  readonly #texts = new LinkTexts();
  readonly #kinds: Uint8Array;
  readonly #ids: Uint32Array;
  readonly #types: Uint8Array;
  readonly #targets: Uint32Array;
  readonly #sizes: Uint16Array;
  readonly #mask: number;
  #next = 0;
  #nextId: number;
  readonly #idStep: number;
  readonly #done = { nodesAdded: 0, nodesDeleted: 0, linksAdded: 0, linksDeleted: 0 };
  /** Lists that were not in the order of their times. */
  #disorders = 0;

  constructor(store: LinkStore, graph: LinkGraph, seed: number, lane: number, lanes: number) {
    this.#store = store;
    this.#graph = graph;
    const { draws, nodes } = graph;
    this.#kinds = new Uint8Array(draws);
    this.#ids = new Uint32Array(draws);
    this.#types = new Uint8Array(draws);
    this.#targets = new Uint32Array(draws);
    this.#sizes = new Uint16Array(draws);
    this.#mask = draws - 1;
    // Two mixes may run on the same rows.
    this.#nextId = nodes + 1 + 2 * lane + (graph.isTao ? 1 : 0);
    this.#idStep = 2 * lanes;
    this.#draw(new Stream(seed, lane));
  }

  #draw(stream: Stream): void {
    const { draws, mix } = this.#graph;
    for (let i = 0; i < draws; i++) {
      const kind = drawKind(mix, stream);
      const type = stream.below(LINK_TYPES);
      const id = this.#drawId(kind, stream);
      const isNode = kind <= DELETE_NODE;
      this.#kinds[i] = kind;
      this.#types[i] = type;
      this.#ids[i] = id;
      this.#targets[i] = isNode ? 0 : this.#drawTarget(kind, id, type, stream);
      this.#sizes[i] = isNode
        ? drawSize(stream, SIZES.node, SIZES.mostNode)
        : kind === GET_LINKS
          ? drawCount(stream)
          : drawSize(stream, SIZES.link, SIZES.mostLink);
    }
  }

  #drawId(kind: number, stream: Stream): number {
    const { popularity, nodes } = this.#graph;
    if (kind === DELETE_NODE) return 1 + stream.below(nodes);
    if (kind === GET_NODE) return 1 + popularity.nodeRead.draw(stream);
    if (kind <= DELETE_NODE) return 1 + popularity.nodeUpdate.draw(stream);
    return 1 + popularity[kind >= COUNT ? "linkRead" : "linkWrite"].draw(stream);
  }

  /** A link that exists with the chance that LinkBench gives it. */
  #drawTarget(kind: number, id: number, type: number, stream: Stream): number {
    const exists =
      kind === GET_LINKS
        ? EXISTS.get
        : kind === DELETE_LINK || kind === CHANGE_TYPE
          ? EXISTS.delete
          : kind === UPDATE_LINK
            ? EXISTS.update
            : EXISTS.add;
    const links = linksOfType(this.#graph.degrees[id], type);
    const number = stream.below(Math.max(1, Math.ceil(links / exists)));
    return targetOf(id, number * LINK_TYPES + type);
  }

  next(): Result<Outcome> {
    const turn = this.#next++;
    const i = turn & this.#mask;
    const kind = this.#kinds[i];
    this.drawn = kind;
    const store = this.#store;
    const id = this.#ids[i];
    const type = this.#types[i];
    const target = this.#targets[i];
    const size = this.#sizes[i];
    const time = FIRST_TIME + TIME_SPAN + turn;
    switch (kind) {
      case GET_NODE:
        return then(store.getNode(id), outcomeOf);
      case ADD_NODE: {
        const added = this.#nextId;
        this.#nextId += this.#idStep;
        return then(store.addNode(added, time, this.#texts.of(size, turn)), () => {
          this.#done.nodesAdded++;
          return DONE;
        });
      }
      case UPDATE_NODE:
        return then(store.updateNode(id, time, this.#texts.of(size, turn)), outcomeOf);
      case DELETE_NODE:
        return then(store.deleteNode(id), (isDone) => {
          if (isDone) this.#done.nodesDeleted++;
          return outcomeOf(isDone);
        });
      case DELETE_LINK:
        return then(store.deleteLink(id, type, target), (isDone) => {
          if (isDone) this.#done.linksDeleted++;
          return outcomeOf(isDone);
        });
      case CHANGE_TYPE:
        return then(store.changeType(id, type, target, (type + 1) % LINK_TYPES), (changed) => {
          if (changed < 0) this.#done.linksDeleted++;
          return outcomeOf(changed !== 0);
        });
      case COUNT:
        return then(store.countLinks(id, type), () => DONE);
      case GET_LINKS: {
        const ids: number[] = [];
        for (let n = 0; n < size; n++) ids.push(target + n * LINK_TYPES);
        return then(store.getLinks(id, type, ids), () => DONE);
      }
      case GET_LIST:
        return then(store.getList(id, type, this.#graph.limit), this.#checkOrder);
      case GET_TIME_RANGE: {
        const high = FIRST_TIME + TIME_SPAN;
        return then(store.getTimeRange(id, type, high, FIRST_TIME, TAO_LIMIT), this.#checkOrder);
      }
      default:
        return then(store.addLink(id, type, target, time, this.#texts.of(size, turn)), (isNew) => {
          if (isNew) this.#done.linksAdded++;
          return DONE;
        });
    }
  }

  readonly #checkOrder = (links: readonly FoundLink[]): Outcome => {
    for (let i = 1; i < links.length; i++) {
      if (links[i].time > links[i - 1].time) this.#disorders++;
    }
    return DONE;
  };

  tally(): Tally {
    return { ...this.#done, disorders: this.#disorders };
  }
}

/** Engines in this process answer at once. */
function then<T>(result: Result<T>, next: (value: T) => Outcome): Result<Outcome> {
  return result instanceof Promise ? result.then(next) : next(result);
}

function outcomeOf(isDone: boolean): Outcome {
  return isDone ? DONE : REFUSED;
}

function drawKind(mix: LinkGraph["mix"], stream: Stream): number {
  let rest = 100 * stream.unit();
  for (let kind = 0; kind < KINDS.length; kind++) {
    rest -= mix[KINDS[kind]];
    if (rest < 0) return kind;
  }
  return GET_LIST;
}

function drawCount(stream: Stream): number {
  let count = 1;
  while (count < MOST_MULTIGET && stream.unit() > MULTIGET_P) count++;
  return count;
}
