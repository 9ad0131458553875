/** The NIC of a node with the protocol "xenic" as a thread: what it is told by the host's thread, and what it tells. */

import { parentPort } from "node:worker_threads";
import type { OpenedTable } from "../../protocols/xenic/client-messages.ts";
import { XenicNicService, type XenicStats, type XenicTask } from "./xenic-nic.ts";

export type FromXenicNic =
  | { readonly what: "listening"; readonly port: number }
  | { readonly what: "formed"; readonly configurationId: number }
  | { readonly what: "failed"; readonly code: string; readonly message: string }
  | { readonly what: "wake" }
  | {
      readonly what: "table";
      readonly table: OpenedTable;
      readonly copies: ReadonlyMap<number, SharedArrayBuffer>;
    }
  | { readonly what: "stats"; readonly stats: XenicStats }
  | { readonly what: "closed" };

export type ToXenicNic =
  | { readonly what: "known"; readonly number: number }
  | { readonly what: "stats" }
  | { readonly what: "close" };

export function isXenicTask(task: unknown): task is XenicTask {
  return typeof task === "object" && task !== null && "xenic" in task;
}

/** In the worker. */
export async function runXenicNic(task: XenicTask): Promise<void> {
  const port = parentPort!;
  const tell = (message: FromXenicNic): void => port.postMessage(message);
  const fail = (error: unknown): void => {
    const { code = "SITU_CONFIG", message } = error as { code?: string; message: string };
    tell({ what: "failed", code, message });
  };
  /** Tables that the host does not know yet, by their numbers. */
  const telling = new Map<number, () => void>();
  let nic: XenicNicService;
  try {
    nic = await XenicNicService.open(task, {
      formed: (configurationId) => tell({ what: "formed", configurationId }),
      refused: fail,
      wake: () => tell({ what: "wake" }),
      table: (table, copies, known) => {
        telling.set(table.number, known);
        tell({ what: "table", table, copies });
      },
    });
  } catch (error) {
    fail(error);
    port.close();
    return;
  }
  port.on("message", (wanted: ToXenicNic) => {
    if (wanted.what === "known") {
      telling.get(wanted.number)?.();
      telling.delete(wanted.number);
    } else if (wanted.what === "stats") tell({ what: "stats", stats: nic.stats() });
    else {
      void nic.close().then(() => {
        tell({ what: "closed" });
        port.close();
      });
    }
  });
  tell({ what: "listening", port: nic.port });
}
