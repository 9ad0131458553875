/** The disk of a backup is full: nothing is acknowledged that it could not keep, and all goes on when there is room. */

import { expect, test } from "vitest";
import { balancesOf, Scene, transfer } from "./scene.ts";

test("disk full at a backup", async () => {
  const scene = new Scene({ nodes: 3, isLogged: true });
  const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
  scene.open([a, b]);
  const client = await scene.client();
  expect((await scene.run(transfer(client, a, b))).kind).toBe("ok");
  const backup = scene.nodes[2];
  backup.isDiskFull = true;
  const during = scene.start(transfer(client, a, b));
  await scene.work(1_000);
  expect(during.result).toBeUndefined();
  backup.isDiskFull = false;
  await scene.work(1_000);
  expect(during.result?.kind).toBe("ok");
  const after = await scene.run(balancesOf(client, [a, b]));
  expect(after).toMatchObject({ kind: "ok", result: [98n, 102n] });
  scene.rest();
  expect([scene.balance(a), scene.balance(b)]).toEqual([98n, 102n]);
});
