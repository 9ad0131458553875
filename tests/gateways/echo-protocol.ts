/** A second wire protocol, as small as one can be: it answers each line with the number of its row. */

import { openLocal as open } from "../../src/database/open.ts";
import type { WireProtocol } from "../../src/gateways/threads/wire-protocol.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { compiled } from "../helpers/project-root.ts";

export const Line = table("line", { id: u32(), text: str() }, { key: "id" });

export interface EchoOptions {
  readonly path: string;
  readonly isFirst: boolean;
}

export const ECHO: WireProtocol<EchoOptions, string> = {
  script: compiled("tests/gateways/echo-thread.js"),
  tooManyClients: "full\n",
  open: ({ path }) => open({ path, tables: [Line], durability: "none" }),
  serve: (database, _options, listener) => {
    const sockets = new Set<{ destroy(): void }>();
    let heard = "nothing";
    return {
      adopt: (socket, { id }) => {
        sockets.add(socket);
        socket.setEncoding("utf8");
        socket.on("data", (text: unknown) => {
          const line = String(text).trim();
          if (line === "?") {
            socket.write(`${heard}\n`);
            return;
          }
          if (line.startsWith("!")) {
            heard = line;
            listener.announced(line);
          }
          const row = database.transactSync((tx) => {
            const count = tx.scan(Line).toArray().length;
            tx.insert(Line, { id: count, text: line });
            return count;
          });
          socket.write(`${row}\n`);
        });
        socket.on("end", () => socket.end());
        socket.on("close", () => {
          sockets.delete(socket);
          listener.left(id);
        });
        socket.resume();
      },
      notice: (line) => {
        heard = line;
      },
      close: async () => {
        for (const socket of sockets) socket.destroy();
      },
    };
  },
};
