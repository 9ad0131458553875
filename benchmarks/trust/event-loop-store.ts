// The store of the measure event-loop, for both of its processes.
import { i64, table, u32 } from "../../src/index.ts";

export const EventLoopRows = table("rows", { id: u32(), value: i64() }, { key: "id" });
/** The rows that the other process writes, over and over; those from here on are this process's own. */
export const STOPPED_ROWS = 4_000;

export interface EventLoopTask {
  readonly path: string;
  readonly memoryDir: string;
}
