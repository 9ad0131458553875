/**
 * The procedure by which transactions commit that were executed elsewhere: by a client, or by a procedure at a host. What they have
 * read and what they write is all known, so it is one-shot, and runs at the NIC or at a remote primary like any other: is each row
 * still of the version that was read? Then what was written is written. It takes no time to speak of, so it runs in the NIC itself.
 *
 * Its arguments are rows, with the version that was read, if it was, and the value that is written, if it is.
 */

import { Reader, Writer } from "../../fabric/wire.ts";
import type { Work } from "./coordinator.ts";
import { decodeItem, encodeItem, type Item } from "./message.ts";
import type { XenicProcedure } from "./procedure.ts";
import { isSame } from "./validate.ts";

/** Its number, at all nodes. */
export const CONFIRM = 0;

const NOTHING = new Int32Array(0);

export const confirm: XenicProcedure = {
  runs: "nic",
  isOneShot: true,
  run: (args, read) => {
    const items = itemsOf(args);
    const isAsItWas = items.every(
      (item) => item.version === undefined || isSame(item.version, read.versionOf(item)),
    );
    if (!isAsItWas) return { kind: "conflict" };
    const writes = items.flatMap(({ table, key, isWritten, value }) =>
      isWritten ? [{ table, key, value: value ?? null }] : [],
    );
    return { kind: "done", writes, result: NOTHING };
  },
};

export function confirmation(items: readonly Item[]): Work {
  const out = new Writer();
  out.word(items.length);
  for (const item of items) encodeItem(out, item);
  return {
    procedure: CONFIRM,
    args: out.views.i32.slice(0, out.at),
    reads: items.filter(({ isWritten }) => !isWritten),
    writes: items.filter(({ isWritten }) => isWritten),
  };
}

function itemsOf(args: Int32Array): Item[] {
  const out = new Writer();
  out.words(args, 0, args.length);
  const body = new Reader(out.views).reset(out.views, 0, out.at);
  const items: Item[] = [];
  for (let left = body.count(body.left); left > 0; left--) items.push(decodeItem(body));
  return items;
}
