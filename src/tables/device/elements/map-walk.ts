/**
 * Walks over the map of a device table. Places go into typed arrays, at positions that the cursor gives out instead
 * of rows: a million entries make no object. A position is good until the next step.
 */

import { MAX_PAGE_ROW_WORDS } from "../../../device/page.ts";
import type { Transaction } from "../../../engine/transaction.ts";
import type { Views } from "../../../memory/views.ts";
import type { AnyCodec } from "../../../stores/kind.ts";
import type { Cursor, PlacedCursor } from "../../../stores/store.ts";
import type { DeviceTable } from "../device-table.ts";
import { placeWords, wordsIn } from "../hidden-tables.ts";

const ALL = { from: undefined, to: undefined };
const FIRST_ENTRIES = 4_096;

/** Whether a row is on a page, with others. */
export function sharesPage(where: number): boolean {
  return where !== 0 && wordsIn(where) <= MAX_PAGE_ROW_WORDS;
}

/** Says whether the key of an entry is wanted. It may be asked about an entry that nobody will see. */
export type WantsKey = (page: number, generation: number, where: number) => boolean;

export class MapWalk {
  /** By position. */
  pages = new Uint32Array(FIRST_ENTRIES);
  generations = new Int32Array(FIRST_ENTRIES);
  wheres = new Uint32Array(FIRST_ENTRIES);
  readonly keys: unknown[] = [];
  /** The positions of the last step. */
  readonly found: number[] = [];
  readonly #cursor: Cursor<number>;
  #next = 0;

  constructor(table: DeviceTable, wantsKey: WantsKey) {
    const { hidden, executor, root } = table;
    const { mapCodec } = hidden;
    const [pageAt, generationAt, whereAt] = placeWords(hidden.mapTable, hidden.names);
    const decode = (views: Views, at: number, words: number): number => {
      const { i32 } = views;
      const position = this.#next++;
      if (position >= this.pages.length) this.#grow();
      const page = i32[at + pageAt] >>> 0;
      const generation = i32[at + generationAt];
      const where = i32[at + whereAt] >>> 0;
      this.pages[position] = page;
      this.generations[position] = generation;
      this.wheres[position] = where;
      this.keys[position] = wantsKey(page, generation, where)
        ? table.keyIn(mapCodec.decode(views, at, words))
        : undefined;
      return position;
    };
    const codec = { ...mapCodec, decode } as unknown as AnyCodec<number, unknown>;
    this.#cursor = hidden.mapKind.open(executor, codec, root.map).cursor(ALL, false);
  }

  /** The number of the place where it goes on, if there are numbers; only between steps that gave out all they had read. */
  get place(): number | undefined {
    return (this.#cursor as Partial<PlacedCursor<number>>).place;
  }

  set place(place: number | undefined) {
    (this.#cursor as PlacedCursor<number>).place = place!;
  }

  /** Goes on; false at the end. Positions that the cursor has kept stay: it gives them out before it reads on. */
  next(tx: Transaction, most: number): boolean {
    this.#next = 0;
    return this.#cursor.next(tx, this.found, most);
  }

  #grow(): void {
    const length = this.pages.length * 2;
    const { pages, generations, wheres } = this;
    this.pages = new Uint32Array(length);
    this.generations = new Int32Array(length);
    this.wheres = new Uint32Array(length);
    this.pages.set(pages);
    this.generations.set(generations);
    this.wheres.set(wheres);
  }
}
