// All engines by name. Each is loaded when it is asked for: a worker has one of them only.
import type { EngineDriver, EngineName } from "./engine.ts";

export async function driverOf(name: EngineName): Promise<EngineDriver> {
  switch (name) {
    case "situ":
      return (await import("./situ/driver.ts")).situDriver;
    case "cluster":
      return (await import("./cluster/driver.ts")).clusterDriver;
    case "lmdb":
      return (await import("./lmdb/driver.ts")).lmdbDriver;
    case "sqlite":
      return (await import("./sqlite/driver.ts")).sqliteDriver;
    case "redis":
      return (await import("./redis/driver.ts")).redisDriver;
    case "postgres":
      return (await import("./postgres/driver.ts")).postgresDriver;
  }
}

export const engineTitles: Readonly<Record<EngineName, string>> = {
  situ: "Situ",
  cluster: "Situ cluster",
  lmdb: "lmdb",
  sqlite: "SQLite",
  redis: "Redis",
  postgres: "PostgreSQL",
};
