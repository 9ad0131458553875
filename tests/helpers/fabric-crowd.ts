/**
 * Many connections from a process of their own, so that both ends have file descriptors enough. The
 * process knows nothing of Situ: it is given the bytes to say, one answer after the other.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { FrameWriter } from "../../src/fabric/frames.ts";
import { HELLO, PROOF, writeHello } from "../../src/fabric/tcp/handshake.ts";
import { makeNonce } from "../../src/runtime/secret.ts";
import { CLUSTER, eventually } from "./fabric-tcp.ts";

/** How far the connections of a crowd have come. */
export interface CrowdReport {
  readonly connected: number;
  /** Their handshakes are over. */
  readonly ready: number;
  readonly closed: number;
}

const SOURCE = `
  const { connect } = require("node:net");
  const { port, count, says, atOnce } = JSON.parse(process.argv[1]);
  const lines = says.map((text) => Buffer.from(text, "base64"));
  const report = { connected: 0, ready: 0, closed: 0 };
  let started = 0;
  let underWay = 0;
  const next = () => {
    while (started < count && underWay < atOnce) {
      started++;
      underWay++;
      begin();
    }
  };
  const begin = () => {
    let said = 0;
    let isUnderWay = true;
    const over = () => {
      if (!isUnderWay) return;
      isUnderWay = false;
      underWay--;
      next();
    };
    const socket = connect({ host: "127.0.0.1", port }, () => {
      report.connected++;
      if (lines.length === 0) over();
      else socket.write(lines[said++]);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      report.closed++;
      over();
    });
    socket.on("data", () => {
      if (said < lines.length) socket.write(lines[said++]);
      else if (isUnderWay && lines.length > 0) {
        report.ready++;
        over();
      }
    });
  };
  next();
  setInterval(() => process.stdout.write(JSON.stringify(report) + "\\n"), 20);
  process.stdin.on("end", () => process.exit(0)).resume();
`;

export class Crowd {
  report: CrowdReport = { connected: 0, ready: 0, closed: 0 };
  readonly #child: ChildProcess;
  #rest = "";

  /** `says`: nothing (they are silent), or the two frames of a client's handshake. */
  constructor(port: number, count: number, says: readonly Buffer[]) {
    const order = { port, count, atOnce: 200, says: says.map((each) => each.toString("base64")) };
    this.#child = spawn(process.execPath, ["-e", SOURCE, JSON.stringify(order)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop() ?? "";
      const last = lines.at(-1);
      if (last !== undefined) this.report = JSON.parse(last) as CrowdReport;
    });
  }

  until(done: (report: CrowdReport) => boolean): Promise<void> {
    return eventually(() => done(this.report));
  }

  async leave(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.stdin?.end();
    await ended;
  }
}

/** What a client without a secret says to node 0. */
export function handshakeLines(): Buffer[] {
  const lineOf = (write: (frames: FrameWriter) => void): Buffer => {
    const frames = new FrameWriter();
    write(frames);
    frames.end();
    return Buffer.from(frames.out.views.bytes.subarray(0, frames.bytes));
  };
  const hello = { cluster: CLUSTER, role: -1, to: 0, instance: "crowd", nonce: makeNonce() };
  return [
    lineOf((frames) => writeHello(frames.begin(HELLO, 0, 1), hello)),
    lineOf((frames) => frames.begin(PROOF, 0, 1).bytes(new Uint8Array(0))),
  ];
}
