import { describe } from "vitest";
import { postgresDriver } from "../../benchmarks/engines/postgres/driver.ts";
import { testServer } from "./peers-suite.ts";

describe("postgres", () => {
  testServer(postgresDriver, ({ host }) => String(host));
});
