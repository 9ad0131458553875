/** What a process writes beside the keys of Redis clients. */

import { u32 } from "../../../src/tables/fields.ts";
import { table } from "../../../src/tables/table.ts";

export const Transfer = table("transfers", { id: u32(), from: u32(), to: u32() }, { key: "id" });
