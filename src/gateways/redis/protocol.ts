/** The Redis protocol, for the threads that serve it (threads/wire-protocol.ts). */

import { openLocal as open } from "../../database/open.ts";
import type { WireProtocol } from "../threads/wire-protocol.ts";
import type { SettingChanges } from "./settings.ts";
import { REDIS_TABLES } from "./tables.ts";
import { RedisThread, type RedisThreadOptions } from "./thread.ts";

export const REDIS: WireProtocol<RedisThreadOptions, SettingChanges> = {
  script: "situ-gateway.js",
  tooManyClients: "-ERR max number of clients reached\r\n",
  open: ({ path, memoryBytes, durability }) =>
    open({
      path,
      tables: REDIS_TABLES,
      ...(memoryBytes === undefined ? {} : { memoryBytes }),
      ...(durability === undefined ? {} : { durability }),
    }),
  serve: (database, options, listener) => new RedisThread(database, options, listener),
};
