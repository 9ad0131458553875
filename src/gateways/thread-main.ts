/** What a thread of a gateway runs: it serves the clients that it is given until it is told to stop. */

import { Socket } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { GatewayThread, type ThreadOptions } from "./redis/thread.ts";
import type { FromThread, ToThread } from "./worker-thread.ts";

const port = parentPort!;
const tell = (message: FromThread): void => port.postMessage(message);

function failed(error: unknown): void {
  const { code, message, stack } = error as { code?: string; message: string; stack?: string };
  const isSitu = code?.startsWith("SITU_") === true;
  tell({
    what: "failed",
    code: isSitu ? code : undefined,
    message: isSitu ? message : (stack ?? message),
  });
}

async function main(): Promise<void> {
  const thread = await GatewayThread.start(workerData as ThreadOptions, {
    left: (id) => tell({ what: "left", id }),
    changed: (changes) => tell({ what: "changed", changes }),
    failed,
  });
  port.on("message", (message: ToThread) => {
    if (message.what === "client") {
      thread.adopt(new Socket({ fd: message.fd, allowHalfOpen: true }), message.peer);
    } else if (message.what === "settings") {
      thread.settings.take(message.changes);
    } else {
      thread.close().then(() => port.close(), failed);
    }
  });
  tell({ what: "ready" });
}

main().catch(failed);
