/**
 * Write skew: two transactions read the same two rows, each changes one of them, and together they
 * break a rule that both have checked. Snapshot isolation allows it, strict serializability does not.
 *
 *   node dist/examples/write-skew/main.js
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bool, type Database, destroy, open, str, table } from "situ";

// Rows of more than 128 bytes are locked one by one; shorter ones may share a lock with neighbours.
const Doctor = table("doctor", { name: str(16), onCall: bool(), notes: str(200) }, { key: "name" });
const NAMES = ["ada", "grace"];

/** Goes home if somebody else stays. The rule: one doctor at least is on call. */
async function goHome(
  db: Database,
  name: string,
  isolation: "snapshot" | "strict-serializable",
  bothHaveRead: () => Promise<void>,
): Promise<void> {
  await db.transact(
    async (tx) => {
      const doctors = await tx.getMany(Doctor, NAMES);
      const staying = doctors.filter((doctor) => doctor?.onCall && doctor.name !== name);
      await bothHaveRead();
      if (staying.length > 0) await tx.update(Doctor, name, { onCall: false });
    },
    { isolation },
  );
}

/** Resolves for both when both have called it; at once when called again, by a retry. */
function meetingOfTwo(): () => Promise<void> {
  let arrived = 0;
  let open: () => void = () => {};
  const both = new Promise<void>((resolve) => {
    open = resolve;
  });
  return () => {
    if (++arrived === 2) open();
    return both;
  };
}

const folder = mkdtempSync(join(tmpdir(), "situ-write-skew-"));
// Without a log, which may be slow to start: a transaction that waits for it is run again, and no longer
// overlaps with the other one.
const db = await open({
  path: folder,
  tables: [Doctor],
  memoryBytes: 16 * 2 ** 20,
  durability: "none",
});
try {
  for (const isolation of ["snapshot", "strict-serializable"] as const) {
    db.transactSync((tx) => {
      for (const name of NAMES) tx.put(Doctor, { name, onCall: true, notes: "" });
    });
    const meeting = meetingOfTwo();
    await Promise.all(NAMES.map((name) => goHome(db, name, isolation, meeting)));
    const onCall = [...db.scan(Doctor)].filter((doctor) => doctor.onCall).length;
    console.log(`${isolation}: ${onCall} on call`);
  }
} finally {
  await db.close();
  await destroy(folder);
  rmSync(folder, { recursive: true, force: true });
}
