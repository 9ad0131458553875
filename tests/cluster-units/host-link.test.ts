/** What goes between the two threads of a node: here with both ends in one thread. */

import { afterEach, describe, expect, test } from "vitest";
import type { Incoming, Request, Ticket } from "../../src/fabric/fabric.ts";
import { makeChannel } from "../../src/fabric/rings/channel.ts";
import { Reader, Writer } from "../../src/fabric/wire.ts";
import { HostLink, type LinkService } from "../../src/node/host-link.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { MAX_FRAME_BYTES, MAX_UNREAD_BYTES } from "../../src/runtime/limits.ts";
import { eventually } from "../helpers/store.ts";

let open: HostLink[] = [];
afterEach(() => {
  for (const link of open) link.close();
  open = [];
});

function pair(left: LinkService, right: LinkService): [HostLink, HostLink] {
  const [a, b] = makeChannel();
  const links: [HostLink, HostLink] = [new HostLink(a, 1, left), new HostLink(b, 1, right)];
  open.push(...links);
  return links;
}

class Asked implements Request {
  readonly kind: number;
  readonly ended: string[];
  readonly #value: number;
  readonly #words: number;

  constructor(kind: number, value: number, ended: string[], words = 0) {
    this.kind = kind;
    this.#value = value;
    this.#words = words;
    this.ended = ended;
  }

  encode(out: Writer): void {
    out.word(this.#value);
    out.wide(this.#value + 0.5);
    for (let i = 0; i < this.#words; i++) out.word(i);
  }

  replied(reply: Reader): void {
    this.ended.push(`replied ${reply.word()} ${reply.wide()}`);
  }

  failed(why: SituError): void {
    this.ended.push(`failed ${why.code}`);
  }
}

const refuse: LinkService = () => {
  throw new SituError("SITU_PERMISSION", "nothing is served at this end");
};

/** Doubles what it gets. */
function double(incoming: Incoming, out = incoming.reply()): void {
  const value = incoming.body.word();
  out.word(value * 2);
  out.wide(incoming.body.wide() * 2);
}

describe("a link", () => {
  test("carries requests both ways, with whom they are for or from, and their replies", async () => {
    const seen: string[] = [];
    const serve: LinkService = (node, incoming) => {
      seen.push(`${node} ${incoming.from.node} ${incoming.from.connection} ${incoming.kind}`);
      double(incoming);
    };
    const [here, there] = pair(serve, serve);
    const ended: string[] = [];
    here.send(2, 0, new Asked(20, 21, ended));
    there.send(-1, 77, new Asked(24, 4, ended));
    await eventually(() => ended.length === 2);
    expect(ended.sort()).toEqual(["replied 42 43", "replied 8 9"]);
    expect(seen.sort()).toEqual(["-1 -1 77 24", "2 2 0 20"]);
  });

  test("an error keeps its code; a reply may come later, or be an error later", async () => {
    const tickets: Ticket[] = [];
    const [here] = pair(refuse, (_, incoming) => {
      if (incoming.kind === 1) throw new SituError("SITU_FULL", "no room");
      tickets.push(incoming.defer());
    });
    const ended: string[] = [];
    here.send(0, 0, new Asked(1, 1, ended));
    here.send(0, 0, new Asked(2, 1, ended));
    here.send(0, 0, new Asked(3, 1, ended));
    await eventually(() => tickets.length === 2 && ended.length === 1);
    expect(ended).toEqual(["failed SITU_FULL"]);
    tickets[1].fail(new SituError("SITU_TIMEOUT", "too late"));
    tickets[0].reply((out) => {
      out.word(5);
      out.wide(6);
    });
    await eventually(() => ended.length === 3);
    expect(ended.slice(1)).toEqual(["failed SITU_TIMEOUT", "replied 5 6"]);
  });

  test("a request that came over a fabric is passed on, and its reply back", async () => {
    const [nic] = pair(refuse, (_, incoming) => {
      if (incoming.kind === 9) throw new SituError("SITU_TYPE", "no");
      double(incoming);
    });
    const ended: string[] = [];
    const passed = (kind: number): Incoming => {
      const a = new Asked(kind, 3, ended);
      const out = new Writer();
      a.encode(out);
      const body = new Reader(out.views).reset(out.views, 0, out.at);
      const ticket: Ticket = {
        isWanted: true,
        reply(write) {
          const reply = new Writer();
          write(reply);
          a.replied(new Reader(reply.views).reset(reply.views, 0, reply.at));
        },
        fail: (error) => a.failed(error),
      };
      return {
        from: { node: -1, connection: 5 },
        kind,
        body,
        reply: () => new Writer(),
        defer: () => ticket,
      };
    };
    nic.pass(passed(8));
    nic.pass(passed(9));
    await eventually(() => ended.length === 2);
    expect(ended).toEqual(["replied 6 7", "failed SITU_TYPE"]);
  });

  test("what is too large is refused: a request to its sender, a reply to the one who asked", async () => {
    const words = MAX_FRAME_BYTES / 4;
    const tickets: Ticket[] = [];
    const [here] = pair(refuse, (_, incoming) => {
      if (incoming.kind === 2) tickets.push(incoming.defer());
      else incoming.reply().words(new Int32Array(words), 0, words);
    });
    const ended: string[] = [];
    here.send(0, 0, new Asked(1, 1, ended, words));
    await eventually(() => ended.length === 1);
    here.send(0, 0, new Asked(1, 1, ended));
    await eventually(() => ended.length === 2);
    here.send(0, 0, new Asked(2, 1, ended));
    await eventually(() => tickets.length === 1);
    tickets[0].reply((out) => out.words(new Int32Array(words), 0, words));
    await eventually(() => ended.length === 3);
    expect(ended).toEqual(Array.from({ length: 3 }, () => "failed SITU_TOO_LARGE"));
  });

  test("requests beyond what may lie unread fail, replies never do", async () => {
    let isServing = false;
    const [here, there] = pair(refuse, (_, incoming) => {
      isServing = true;
      incoming.reply().words(new Int32Array(1 << 18), 0, 1 << 18);
    });
    const ended: string[] = [];
    const most = (4 * MAX_UNREAD_BYTES) / (1 << 20);
    // In one turn: nothing is read meanwhile.
    for (let i = 0; i < most; i++) here.send(0, 0, new Asked(1, 1, ended, 1 << 18));
    await eventually(() => ended.length === most);
    const refused = ended.filter((each) => each === "failed SITU_OVERLOADED").length;
    expect(isServing).toBe(true);
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThan(most);
    // Many small requests with large replies, all at once.
    ended.length = 0;
    for (let i = 0; i < most; i++) here.send(0, 0, new Asked(1, 1, ended));
    await eventually(() => ended.length === most);
    expect(new Set(ended)).toEqual(new Set(["replied 0 0"]));
    there.close();
  });

  test("closed, it fails what is under way and what comes later; late replies go nowhere", async () => {
    const tickets: Ticket[] = [];
    const [here, there] = pair(refuse, (_, incoming) => void tickets.push(incoming.defer()));
    const ended: string[] = [];
    here.send(0, 0, new Asked(1, 1, ended));
    await eventually(() => tickets.length === 1);
    here.close();
    here.close();
    expect(ended).toEqual(["failed SITU_CLOSED"]);
    here.send(0, 0, new Asked(1, 1, ended));
    expect(ended).toHaveLength(1);
    await eventually(() => ended.length === 2);
    expect(ended[1]).toBe("failed SITU_CLOSED");
    there.close();
    tickets[0].reply((out) => out.word(1));
    tickets[0].fail(new SituError("SITU_FULL", "late"));
    expect(ended).toHaveLength(2);
  });
});
