/**
 * Administer: what an operator wants, to the manager; and a report, of any node. JSON both ways, for they are
 * rare. They are served whatever the configuration of the one who asks.
 */

import { ADMINISTER_KIND, type Incoming, type NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { Message } from "../../protocols/message.ts";
import { SituError } from "../../runtime/errors.ts";
import { type Granted, type Wish, wishOf } from "./administration.ts";

/** How a node is at this moment. */
export interface NodeReport {
  /** Whether it has its lease in a configuration that is committed. */
  readonly isServing: boolean;
  /** Whether all its rows can be read, if it serves: else they are being recovered. */
  readonly isWhole: boolean;
}

const REPORT = JSON.stringify({ what: "report" });

export class Administer extends Message {
  readonly kind = ADMINISTER_KIND;
  granted: Granted | undefined;
  readonly #wish: Wish;

  constructor(to: NodeId, wish: Wish) {
    super(to);
    this.#wish = wish;
  }

  encode(out: Writer): void {
    out.text(JSON.stringify(this.#wish));
  }

  protected decode(reply: Reader): void {
    this.granted = JSON.parse(reply.text()) as Granted;
  }
}

export class AskReport extends Message {
  readonly kind = ADMINISTER_KIND;
  report: NodeReport | undefined;

  encode(out: Writer): void {
    out.text(REPORT);
  }

  protected decode(reply: Reader): void {
    this.report = JSON.parse(reply.text()) as NodeReport;
  }
}

/** At a node. */
export interface Administration {
  grant(wish: Wish): Granted;
  report(): NodeReport;
}

export function serveAdminister(node: Administration | undefined, incoming: Incoming): void {
  if (node === undefined) throw new SituError("SITU_OVERLOADED", "it is starting");
  const text = incoming.body.text();
  const answer = text === REPORT ? node.report() : node.grant(wishOf(text));
  incoming.reply().text(JSON.stringify(answer));
}
