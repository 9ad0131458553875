/**
 * What every fabric must do (src/fabric/fabric.ts), as a suite that runs over each of them. Verbs are
 * in contract-verbs.ts.
 */

import { afterEach, describe, expect, test } from "vitest";
import { CLIENT, DESCRIBE_KIND, type Endpoint } from "../../src/fabric/fabric.ts";
import { ReadWords } from "../../src/fabric/verbs.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { MAX_FRAME_BYTES, MAX_IN_FLIGHT, MAX_QUEUED_REQUESTS } from "../../src/runtime/limits.ts";
import type { FabricMaker, FabricPlan, TestFabric } from "../helpers/fabric-maker.ts";
import {
  Asked,
  DEFER,
  ECHO,
  echo,
  FAIL,
  FAIL_LATE,
  MANY,
  padded,
  sendAll,
  TestService,
  WHO,
} from "../helpers/fabric-requests.ts";
import { testVerbContract } from "./contract-verbs.ts";

export function testFabricContract(maker: FabricMaker): void {
  describe(`the contract of fabrics: ${maker.name}`, () => {
    let fabric: TestFabric | undefined;

    afterEach(async () => {
      await fabric?.close();
      fabric = undefined;
    });

    const make = async (plan: FabricPlan): Promise<TestFabric> => {
      fabric = await maker.make(plan);
      return fabric;
    };

    /** One node with the service of the tests, and a client. */
    const makePair = async () => {
      const service = new TestService();
      const made = await make({ nodes: [{ service: service.serve }] });
      const [client] = made.clients;
      const ask = async (...requests: Asked[]): Promise<void> => {
        sendAll(client, 0, requests);
        await made.until(() => requests.every(({ isOver }) => isOver));
      };
      return { made, service, client, node: made.nodes[0], ask };
    };

    describe("requests and replies", () => {
      test("a request gets its reply, in a later turn", async () => {
        const { made, client, node } = await makePair();
        const request = echo(1, -2, 3);
        client.send(0, request);
        expect(request.ends).toEqual([]);
        await made.until(() => request.isOver);
        expect(request.ends).toEqual(["replied"]);
        expect(request.words).toEqual(padded([1, -2, 3]));
        expect(client.counters.repliesReceived).toBe(1);
        expect(node.counters.requestsServed).toBe(1);
      });

      test("each of many gets its own reply, once", async () => {
        const { ask, service } = await makePair();
        const requests = Array.from({ length: 10_000 }, (_, i) => echo(i, i * 3));
        await ask(...requests);
        expect(requests.every(({ ends }) => ends.join() === "replied")).toBe(true);
        expect(requests.map(({ words }) => words[1])).toEqual(requests.map((_, i) => i * 3));
        expect(service.served).toBe(requests.length);
      });

      test("what is sent in one turn leaves in one piece, and so do the replies", async () => {
        const { ask, client, node } = await makePair();
        await ask(echo(0));
        const before = [client.counters.writes, node.counters.writes];
        await ask(...Array.from({ length: 64 }, (_, i) => echo(i)));
        expect(client.counters.writes - before[0]).toBe(1);
        expect(node.counters.writes - before[1]).toBeLessThanOrEqual(2);
      });

      test("nodes send to each other and to themselves, and are known as nodes", async () => {
        const service = new TestService();
        const made = await make({ nodes: Array(3).fill({ service: service.serve }) });
        const asked: { request: Asked; from: Endpoint }[] = [];
        for (const from of [...made.nodes, ...made.clients]) {
          for (const to of made.nodes) {
            const request = new Asked(WHO);
            asked.push({ request, from });
            from.send(to.self, request);
          }
        }
        await made.until(() => asked.every(({ request }) => request.isOver));
        expect(asked.map(({ request }) => request.words[0])).toEqual(
          asked.map(({ from }) => from.self),
        );
        expect(made.clients[0].self).toBe(CLIENT);
      });

      test("requests from within replies", async () => {
        const { made, client } = await makePair();
        const depths: number[] = [];
        const again = (depth: number): void => {
          const request = echo(depth);
          const { replied } = request;
          request.replied = (reply) => {
            replied.call(request, reply);
            depths.push(request.words[0]);
            if (depth < 20) again(depth + 1);
          };
          client.send(0, request);
        };
        again(0);
        await made.until(() => depths.length === 21);
        expect(depths).toEqual(Array.from({ length: 21 }, (_, i) => i));
      });
    });

    describe("errors", () => {
      test("an error of the service is the reply, with its code and its words", async () => {
        const { ask, service } = await makePair();
        const request = new Asked(FAIL, (out) => out.text("wörter"));
        const after = echo(5);
        await ask(request, after);
        expect(request.ends).toEqual(["SITU_CONFLICT"]);
        expect(request.error?.message).toBe("wörter");
        expect(request.error?.retryable).toBe(true);
        expect(after.words[0]).toBe(5);
        expect(service.served).toBe(2);
      });

      test("an error after the reply was begun takes its place", async () => {
        const { ask } = await makePair();
        const requests = [echo(1), new Asked(FAIL_LATE), echo(2)];
        await ask(...requests);
        expect(requests.map(({ ends }) => ends.join())).toEqual([
          "replied",
          "SITU_FULL",
          "replied",
        ]);
      });

      test("a reply that ends too early fails its request", async () => {
        const { ask, client, made } = await makePair();
        await ask(echo(1));
        const ends: string[] = [];
        client.send(0, {
          kind: MANY,
          encode: (out) => out.word(2),
          replied: (reply) => {
            reply.skip(100);
            ends.push("replied");
          },
          failed: (why) => ends.push(why.code),
        });
        await made.until(() => ends.length > 0);
        expect(ends).toEqual(["SITU_PROTOCOL"]);
        await ask(echo(2));
      });

      test("a node without a service, or without memory, says so", async () => {
        const made = await make({ nodes: [{}] });
        const request = echo(1);
        made.clients[0].send(0, request);
        const ends: (string | undefined)[] = [];
        made.clients[0].send(0, new ReadWords(0, 0, 1, (_verb, error) => ends.push(error?.code)));
        await made.until(() => request.isOver && ends.length > 0);
        expect(request.ends).toEqual(["SITU_UNSUPPORTED"]);
        expect(ends).toEqual(["SITU_UNSUPPORTED"]);
      });

      test("a node that is not there", async () => {
        const { made, client } = await makePair();
        const request = echo(1);
        client.send(7, request);
        expect(request.ends).toEqual([]);
        await made.until(() => request.isOver);
        expect(request.ends).toEqual(["SITU_UNREACHABLE"]);
      });

      test("another configuration number is refused and counted, until both agree", async () => {
        const service = new TestService();
        const made = await make({
          nodes: [{ service: service.serve, configurationId: 5 }],
          clientConfigurationId: 4,
        });
        const [client] = made.clients;
        const requests = [echo(1), echo(2), echo(3)];
        const ask = async (request: Asked): Promise<void> => {
          client.send(0, request);
          await made.until(() => request.isOver);
        };
        await ask(requests[0]);
        client.configurationId = 6;
        await ask(requests[1]);
        expect(made.nodes[0].counters.stale).toBe(2);
        expect(service.served).toBe(0);
        client.configurationId = 5;
        await ask(requests[2]);
        expect(requests.map(({ ends }) => ends.join())).toEqual([
          "SITU_STALE_CONFIGURATION",
          "SITU_STALE_CONFIGURATION",
          "replied",
        ]);
      });
    });

    test("whoever has another configuration may still ask which is the right one", async () => {
      const service = new TestService();
      const made = await make({
        nodes: [{ service: service.serve, configurationId: 5 }],
        clientConfigurationId: 4,
      });
      const request = new Asked(DESCRIBE_KIND);
      made.clients[0].send(0, request);
      await made.until(() => request.isOver);
      expect(request.ends).toEqual(["replied"]);
      expect(made.nodes[0].counters.stale).toBe(0);
    });

    describe("replies that come later", () => {
      test("in any order, from outside the service, also errors", async () => {
        const { made, client, service } = await makePair();
        const requests = Array.from({ length: 5 }, () => new Asked(DEFER));
        const other = echo(9);
        sendAll(client, 0, [...requests, other]);
        await made.until(() => service.tickets.length === 5 && other.isOver);
        expect(requests.some(({ isOver }) => isOver)).toBe(false);
        const { tickets } = service;
        expect(tickets.every(({ isWanted }) => isWanted)).toBe(true);
        for (const i of [3, 1, 4, 0]) tickets[i].reply((out) => out.word(i));
        tickets[2].fail(new SituError("SITU_TIMEOUT", "too late"));
        await made.until(() => requests.every(({ isOver }) => isOver));
        expect(requests.map(({ ends }) => ends.join())).toEqual([
          "replied",
          "replied",
          "SITU_TIMEOUT",
          "replied",
          "replied",
        ]);
        expect(tickets.some(({ isWanted }) => isWanted)).toBe(false);
      });

      test("a second reply is none", async () => {
        const { made, client, service } = await makePair();
        const request = new Asked(DEFER);
        client.send(0, request);
        await made.until(() => service.tickets.length === 1);
        const [ticket] = service.tickets;
        ticket.reply((out) => out.word(1));
        ticket.reply((out) => out.word(2));
        ticket.fail(new SituError("SITU_FULL", "no"));
        const after = echo(1);
        client.send(0, after);
        await made.until(() => after.isOver && request.isOver);
        expect(request.ends).toEqual(["replied"]);
        expect(request.words[0]).toBe(1);
      });

      test("nobody wants them when the sender is gone", async () => {
        const { made, client, service } = await makePair();
        const request = new Asked(DEFER);
        client.send(0, request);
        await made.until(() => service.tickets.length === 1);
        await client.close();
        const [ticket] = service.tickets;
        await made.until(() => !ticket.isWanted);
        ticket.reply((out) => out.word(1));
        expect(request.ends).toEqual(["SITU_CLOSED"]);
      });
    });

    describe("limits", () => {
      const mostWords = MAX_FRAME_BYTES / 4 - 4;

      test("frames up to the limit, both ways", async () => {
        const { ask } = await makePair();
        const long = new Int32Array(mostWords).map((_, i) => i * 7);
        const there = new Asked(ECHO, (out) => out.words(long, 0, long.length));
        const back = new Asked(MANY, (out) => out.word(mostWords));
        await ask(echo(1), there, back, echo(2));
        expect(there.ends).toEqual(["replied"]);
        expect(
          Buffer.from(Int32Array.from(there.words).buffer).equals(Buffer.from(long.buffer)),
        ).toBe(true);
        expect(back.words.length).toBe(mostWords);
      });

      test("longer ones are refused, both ways, and harm no others", async () => {
        const { ask, service } = await makePair();
        const there = new Asked(ECHO, (out) => {
          for (let i = 0; i <= mostWords; i++) out.word(i);
        });
        const back = new Asked(MANY, (out) => out.word(mostWords + 1));
        const others = [echo(1), echo(2), echo(3)];
        await ask(others[0], there, others[1], back, others[2]);
        expect(there.ends).toEqual(["SITU_TOO_LARGE"]);
        expect(back.ends).toEqual(["SITU_TOO_LARGE"]);
        expect(others.map(({ words }) => words[0])).toEqual([1, 2, 3]);
        expect(service.served).toBe(4);
      });

      test("a request that cannot be encoded fails by itself", async () => {
        const { ask } = await makePair();
        const bad = new Asked(ECHO, (out) => out.value(() => 1));
        const good = echo(4);
        await ask(bad, good);
        expect(bad.ends).toEqual(["SITU_TYPE"]);
        expect(good.words[0]).toBe(4);
      });

      test("more such requests than may be under way leave no trace", async () => {
        const { ask, client } = await makePair();
        await ask(echo(1));
        const bad = Array.from({ length: MAX_IN_FLIGHT + 1 }, () => {
          return new Asked(ECHO, (out) => out.value(Symbol.iterator));
        });
        await ask(...bad);
        await ask(echo(2));
        await client.close();
        expect(bad.every(({ ends }) => ends.join() === "SITU_TYPE")).toBe(true);
      });

      test("more requests than may wait are refused; all others end", async () => {
        const { made, client, service } = await makePair();
        const most = MAX_IN_FLIGHT + MAX_QUEUED_REQUESTS;
        // The first connection is made, so that requests get under way at once.
        const first = echo(0);
        client.send(0, first);
        await made.until(() => first.isOver);
        const requests = Array.from({ length: most + 10 }, (_, i) =>
          i < MAX_IN_FLIGHT ? new Asked(DEFER) : echo(i),
        );
        sendAll(client, 0, requests);
        await made.until(() => requests[most].isOver && service.tickets.length === MAX_IN_FLIGHT);
        expect(requests.slice(most).map(({ ends }) => ends.join())).toEqual(
          Array(10).fill("SITU_OVERLOADED"),
        );
        expect(client.counters.overloaded).toBe(10);
        expect(requests.slice(0, most).some(({ isOver }) => isOver)).toBe(false);
        for (const ticket of service.tickets) ticket.reply((out) => out.word(1));
        await made.until(() => requests.every(({ isOver }) => isOver));
        expect(requests.every(({ ends }) => ends.length === 1)).toBe(true);
        expect(requests.slice(0, most).every(({ ends }) => ends[0] === "replied")).toBe(true);
      });
    });

    describe("the end", () => {
      test("requests under way and later ones fail with SITU_CLOSED", async () => {
        const { made, client, service } = await makePair();
        const before = [new Asked(DEFER), new Asked(DEFER)];
        sendAll(client, 0, before);
        await made.until(() => service.tickets.length === 2);
        const unsent = echo(1);
        client.send(0, unsent);
        await client.close();
        const after = echo(2);
        client.send(0, after);
        await made.until(() => after.isOver);
        for (const { ends } of [...before, unsent, after]) expect(ends).toEqual(["SITU_CLOSED"]);
        await client.close();
      });

      test("a node that closes is lost to its clients, the others are not", async () => {
        const service = new TestService();
        const made = await make({ nodes: Array(2).fill({ service: service.serve }) });
        const [client] = made.clients;
        const lost = [new Asked(DEFER), new Asked(DEFER)];
        sendAll(client, 0, lost);
        await made.until(() => service.tickets.length === 2);
        await made.nodes[0].close();
        const other = echo(3);
        client.send(1, other);
        await made.until(() => other.isOver && lost.every(({ isOver }) => isOver));
        for (const { ends } of lost) expect(ends).toEqual(["SITU_LOST"]);
        expect(other.ends).toEqual(["replied"]);
        expect(client.counters.lost).toBe(2);
      });
    });

    testVerbContract(maker, make);
  });
}
