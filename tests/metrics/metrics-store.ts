/** The table of the processes that commit side by side. */

import { table, u32 } from "../../src/index.ts";

export const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
