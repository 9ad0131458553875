/** The lives of a node: a number that only grows, in its store. */

import { expect, test } from "vitest";
import { attach } from "../../src/attach/attach.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import { raiseLife } from "../../src/tables/served/lives.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

test("each start gets a larger one, whoever asks", async () => {
  const db = await stores.open({});
  const join = () => attach(settingsOf({ path: db.path }), (attached) => attached.executor);
  const [first, second] = [await join(), await join()];
  try {
    expect([raiseLife(first), raiseLife(second), raiseLife(first)]).toEqual([1, 2, 3]);
  } finally {
    first.close();
    second.close();
  }
});
