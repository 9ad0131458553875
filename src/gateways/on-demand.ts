/**
 * The gateways, loaded by the first call: a process that only opens a store does not pay for them when it
 * starts.
 */

import type { Database } from "../database/database.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import type { Gateway, GatewayOptions } from "./gateway-options.ts";
import type { MetricsEndpoint, ServeMetricsOptions } from "./metrics/endpoint.ts";

/** Opens the store and serves it until `close`. */
export async function serve(
  options: GatewayOptions,
  failed?: (error: Error) => void,
): Promise<Gateway> {
  const { serve: start } = await import("./serve.ts");
  return start(options, failed);
}

/** Serves the metrics of an open store, and of all processes that have it open. */
export function serveMetrics(
  database: Database,
  options: ServeMetricsOptions = {},
): Promise<MetricsEndpoint> {
  refuseUnknownOptions("serveMetrics", options, ["host", "port"]);
  return import("./metrics/endpoint.ts").then(({ serveMetrics: start }) =>
    start(database, options),
  );
}
