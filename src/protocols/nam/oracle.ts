/**
 * The naive oracle (NAM-DB §3.1), to compare with: one counter gives all commit timestamps, and a thread of its server
 * is told by message which of them are done. It moves the read timestamp to the last one before which none is
 * missing. So the slowest transaction holds back what everybody sees, and one that never ends holds it for
 * good: a hole, which `skip` closes where it is known that nothing was installed under the timestamp.
 */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { NAM_ORACLE_DONE } from "../kinds.ts";
import { Message } from "../message.ts";
import type { MemoryServer } from "./memory-server.ts";
import { ORACLE_READ_AT, TIMESTAMPS } from "./segments.ts";

export class OracleDone extends Message {
  readonly kind = NAM_ORACLE_DONE;
  readonly #timestamp: number;

  constructor(to: NodeId, timestamp: number) {
    super(to);
    this.#timestamp = timestamp;
  }

  encode(out: Writer): void {
    out.word(this.#timestamp);
  }

  protected decode(_reply: Reader): void {}
}

export class OracleKeeper {
  readonly #words: Int32Array;
  readonly #done = new Set<number>();

  constructor(server: MemoryServer) {
    this.#words = server.region(TIMESTAMPS).i32;
  }

  /** Serves OracleDone. A second copy of it is nothing new. */
  serve(incoming: Incoming): void {
    this.skip(incoming.body.word() >>> 0);
    incoming.reply();
  }

  skip(timestamp: number): void {
    let upTo = this.#words[ORACLE_READ_AT] >>> 0;
    if (timestamp <= upTo) return;
    this.#done.add(timestamp);
    while (this.#done.delete(upTo + 1)) upTo++;
    Atomics.store(this.#words, ORACLE_READ_AT, upTo);
  }
}
