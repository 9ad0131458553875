// The accounts that get a field while others move money between them.
import * as situ from "situ";

const fields = { id: situ.u32(), owner: situ.str(20), balance: situ.i64() };

export const Account = situ.table("account", fields, { key: "id" });
export const WithLevel = situ.table("account", { ...fields, level: situ.u32() }, { key: "id" });

export interface MigrateTask {
  readonly path: string;
  readonly memoryDir: string;
  readonly rows: number;
  readonly number: number;
  readonly seed: number;
}

export function openAccounts({ path, memoryDir, rows }: Omit<MigrateTask, "number" | "seed">) {
  return situ.open({
    path,
    memoryDir,
    tables: [Account],
    memoryBytes: Math.max(64 * 2 ** 20, rows * 640),
    durability: "none",
  });
}
