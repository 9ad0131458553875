/** The inside of a worker thread: serves the clients that it is given until it is told to stop. */

import { Socket } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import type { ClientThread, Peer, WireProtocol } from "./wire-protocol.ts";

export type ToThread<Notice> =
  | { readonly what: "client"; readonly fd: number; readonly peer: Peer }
  | { readonly what: "notice"; readonly notice: Notice }
  | { readonly what: "close" };

export type FromThread<Notice> =
  | { readonly what: "ready" }
  | { readonly what: "left"; readonly id: number }
  | { readonly what: "announced"; readonly notice: Notice }
  | { readonly what: "failed"; readonly code: string | undefined; readonly message: string };

/** To be called by a worker's script, once. */
export function runThread<Options, Notice>(protocol: WireProtocol<Options, Notice>): void {
  const port = parentPort!;
  const tell = (message: FromThread<Notice>): void => port.postMessage(message);
  const failed = (error: unknown): void => tell(failure(error));
  const start = async (): Promise<void> => {
    const options = workerData as Options;
    const database = await protocol.open(options);
    const thread: ClientThread<Notice> = protocol.serve(database, options, {
      left: (id) => tell({ what: "left", id }),
      announced: (notice) => tell({ what: "announced", notice }),
      failed,
    });
    const close = async (): Promise<void> => {
      await thread.close();
      await database.close();
    };
    port.on("message", (message: ToThread<Notice>) => {
      if (message.what === "client") {
        thread.adopt(new Socket({ fd: message.fd, allowHalfOpen: true }), message.peer);
      } else if (message.what === "notice") {
        thread.notice(message.notice);
      } else {
        // Without its port the thread has nothing to wait for, and ends.
        close()
          .catch(failed)
          .finally(() => port.close());
      }
    });
    tell({ what: "ready" });
  };
  start().catch(failed);
}

/** As it crosses to the other thread, which does not get the class of an error. */
function failure(error: unknown): FromThread<never> {
  const { code, message, stack } = error as { code?: string; message: string; stack?: string };
  const isSitu = code?.startsWith("SITU_") === true;
  return {
    what: "failed",
    code: isSitu ? code : undefined,
    message: isSitu ? message : (stack ?? message),
  };
}
