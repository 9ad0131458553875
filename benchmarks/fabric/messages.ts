// Messages of 32 bytes with replies, 64 in flight, between two processes: over Situ's tcp fabric, with
// and without a secret, beside a bare echo that batches in the same way (all that arrived together leaves together) and
// does nothing else.
import { connect, type Socket } from "node:net";
import { CLIENT, FIRST_MESSAGE_KIND, type Request } from "../../src/fabric/fabric.ts";
import { openTcp, type TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import type { TcpOptions } from "../../src/fabric/tcp/tcp-options.ts";
import type { Reader, Writer } from "../../src/fabric/wire.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import type { BenchOptions } from "../harness/bench-options.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import type { Progress } from "../harness/progress.ts";
import { type Contestant, measureRounds, timingOf } from "../harness/rounds.ts";
import type { EchoPorts } from "./echo-process.ts";

export interface MessagesMeasured {
  /** Messages per second, one entry per round. */
  readonly situ: readonly number[];
  /** With a secret, so that everything sent is authenticated. */
  readonly authenticated: readonly number[];
  readonly bare: readonly number[];
}

export const echoCluster = "echo";
export const echoSecret = "known to both ends";
export const messagesInFlight = 64;
export const messageBytes = 32;
const messageWords = messageBytes / 4;

export async function measureMessages(
  { rounds, roundMs }: BenchOptions,
  progress: Progress,
): Promise<MessagesMeasured> {
  const script = new URL("./echo-process.js", import.meta.url);
  const server = await MeasuringProcess.start<"ports", EchoPorts>(script, {});
  const ports = await server.ask("ports");
  const endpoint = await openTcp(clientOf(ports.situ));
  const secretive = await openTcp({ ...clientOf(ports.authenticated), secret: echoSecret });
  const socket = connect({ host: "127.0.0.1", port: ports.bare, noDelay: true });
  const contestants = [
    situEcho("situ", endpoint),
    situEcho("authenticated", secretive),
    bareEcho(socket),
  ];
  const timings = await measureRounds(contestants, { rounds, roundMs }, progress);
  await endpoint.close();
  await secretive.close();
  socket.destroy();
  await server.stop();
  const rates = (name: string): number[] => timingOf(timings, name).map((each) => 1e9 / each);
  return { situ: rates("situ"), authenticated: rates("authenticated"), bare: rates("bare") };
}

function clientOf(port: number): TcpOptions {
  const nodes = new Map([[0, { host: "127.0.0.1", port }]]);
  return { self: CLIENT, nodes, configurationId: 1, cluster: echoCluster };
}

/** Each of the requests is sent again as soon as it is answered. */
function situEcho(name: string, endpoint: TcpEndpoint): Contestant {
  let left = 0;
  let underWay = 0;
  let sum = 0;
  let done: () => void = () => {};
  let failed: (why: SituError) => void = () => {};

  class Echo implements Request {
    readonly kind = FIRST_MESSAGE_KIND;
    readonly payload = new Int32Array(messageWords).fill(7);

    encode(out: Writer): void {
      out.words(this.payload, 0, messageWords);
    }

    replied(reply: Reader): void {
      sum += reply.word();
      if (left > 0) {
        left--;
        endpoint.send(0, this);
      } else if (--underWay === 0) done();
    }

    failed(why: SituError): void {
      failed(why);
    }
  }

  const requests = Array.from({ length: messagesInFlight }, () => new Echo());
  return {
    name,
    run: (operations) =>
      new Promise((resolve, reject) => {
        done = () => resolve(sum);
        failed = reject;
        underWay = Math.min(operations, messagesInFlight);
        left = operations - underWay;
        for (let i = 0; i < underWay; i++) endpoint.send(0, requests[i]);
      }),
  };
}

function bareEcho(socket: Socket): Contestant {
  const batch = Buffer.alloc(messagesInFlight * messageBytes, 7);
  let left = 0;
  let owedBytes = 0;
  let partBytes = 0;
  let sum = 0;
  let done: () => void = () => {};

  socket.on("data", (chunk) => {
    sum += chunk[0];
    owedBytes -= chunk.length;
    partBytes += chunk.length;
    const again = Math.min(left, Math.floor(partBytes / messageBytes));
    partBytes %= messageBytes;
    left -= again;
    if (again > 0) {
      owedBytes += again * messageBytes;
      socket.write(batch.subarray(0, again * messageBytes));
    } else if (owedBytes === 0) done();
  });
  return {
    name: "bare",
    run: (operations) =>
      new Promise((resolve) => {
        done = () => resolve(sum);
        const first = Math.min(operations, messagesInFlight);
        left = operations - first;
        owedBytes = first * messageBytes;
        partBytes = 0;
        socket.write(batch.subarray(0, owedBytes));
      }),
  };
}
