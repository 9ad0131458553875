/**
 * Rows that are read again and again by verb: where each lies is remembered, so that the next read of it is one read of
 * its object and nothing else (FaRM §4.4: fat pointers that clients cache). A row that has moved or is gone has another
 * incarnation, and is looked up again. Absence is remembered, too, by the versions of the buckets that proved it: as long as
 * they have not changed, it still holds.
 *
 * A cell may have become memory of another kind, where words that look like an incarnation are anybody's
 * (stores/remote/remote.ts). So rows that are remembered have a tag, which was drawn when they were made: what has the same
 * incarnation, the same key and the same tag is the row.
 */

import { dataCapacity } from "../../engine/cells.ts";
import type { NodeId } from "../../fabric/fabric.ts";
import { MAX_REMEMBERED_PLACES, MAX_VERB_WORDS } from "../../runtime/limits.ts";
import { readAlone } from "../../stores/remote/open.ts";
import {
  type Answer,
  confirm,
  type Dependency,
  type Found,
  type Reading,
  type RemoteStore,
  type RowPointer,
} from "../../stores/remote/remote.ts";
import { objectWords, ROW_CHUNKS, ROW_DATA, ROW_WORDS } from "../../stores/row-object.ts";
import type { RowValues } from "../../tables/indexes/structure.ts";
import { keyText, type RemoteTable } from "./remote-table.ts";

interface Remembered {
  /** Of the node's life in which it was found. */
  readonly store: RemoteStore<unknown>;
  /** Without one, the row was absent. */
  readonly pointer: RowPointer | undefined;
  readonly dataWords: number;
  readonly tag: unknown;
  readonly dependencies: readonly Dependency[];
}

/** What was found: a row, that there is none, or why it is not known. */
export type Recalled =
  | { readonly outcome: "found"; readonly row: RowValues }
  | { readonly outcome: "absent" | "locked" | "ask" };

export class RememberedRows {
  readonly table: RemoteTable;
  readonly #remembered = new Map<string, Remembered>();
  /** Contiguous reads, as FaRM counts them, and lookups that they were for. */
  reads = 0;
  lookups = 0;

  constructor(table: RemoteTable) {
    this.table = table;
  }

  /** Reads a row at a node that has told where the table lies. */
  *read(node: NodeId, store: RemoteStore<unknown>, key: unknown): Reading<Recalled> {
    this.lookups++;
    const name = `${node} ${keyText(key)}`;
    const known = this.#remembered.get(name);
    if (known !== undefined && known.store === store) {
      const recalled = yield* this.#recall(known, key);
      if (recalled !== undefined) return recalled;
    }
    this.#remembered.delete(name);
    const found = yield* readAlone(store, key);
    this.reads += found.reads;
    if (found.outcome === "locked" || found.outcome === "ask") return { outcome: found.outcome };
    if (found.outcome === "absent") {
      this.#remember(name, store, found, 0, undefined);
      return { outcome: "absent" };
    }
    const row = this.table.codec.decode(found.views, found.at, found.words);
    if (found.pointer !== undefined) {
      const dataWords = dataCapacity(objectWords(found.words) * 4) / 4;
      if (dataWords <= MAX_VERB_WORDS) this.#remember(name, store, found, dataWords, row.tag);
    }
    return { outcome: "found", row };
  }

  /** Undefined if what is remembered does not hold any more. */
  *#recall(known: Remembered, key: unknown): Reading<Recalled | undefined> {
    const { pointer, dataWords, tag, dependencies } = known;
    if (pointer === undefined) {
      this.reads++;
      return (yield* confirm(dependencies)) ? { outcome: "absent" } : undefined;
    }
    this.reads++;
    const { regionId, word } = pointer;
    const [answer]: readonly Answer[] = yield [{ regionId, word, dataWords }];
    if (answer.incarnation !== pointer.incarnation) return undefined;
    if (answer.isLocked || answer.data === undefined) return { outcome: "locked" };
    const { i32 } = answer.data;
    const words = i32[ROW_WORDS];
    if (i32[ROW_CHUNKS] !== 0 || words <= 0 || ROW_DATA + words > dataWords) return undefined;
    const { codec } = this.table;
    // Others have staged their keys meanwhile.
    codec.stageKey(key);
    if (!codec.matches(answer.data, ROW_DATA)) return undefined;
    const row = codec.decode(answer.data, ROW_DATA, words);
    return row.tag === tag ? { outcome: "found", row } : undefined;
  }

  #remember(
    name: string,
    store: RemoteStore<unknown>,
    { pointer, dependencies }: Found,
    dataWords: number,
    tag: unknown,
  ): void {
    if (this.#remembered.size >= MAX_REMEMBERED_PLACES) {
      const [oldest] = this.#remembered.keys();
      this.#remembered.delete(oldest);
    }
    this.#remembered.set(name, { store, pointer, dataWords, tag, dependencies });
  }
}
