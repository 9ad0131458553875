/** `situ serve`: a gateway over a store, from here until a signal comes. */

import { readFileSync } from "node:fs";
import type { GatewayOptions } from "../../gateways/gateway-options.ts";
import { serve } from "../../gateways/serve.ts";
import { SERVE } from "../commands/serve.ts";
import { EXIT_FAILED, EXIT_OK, failureOf, tellFailure, UsageError } from "../failures.ts";
import { environmentOf, flagOf } from "../option-kinds.ts";
import { readableByOthers } from "../read-options.ts";
import { renderTable } from "../text-table.ts";
import { type Context, type OptionValues, type Run, untilStopped } from "./context.ts";

export const runServe: Run<"serve"> = async (values, context) => {
  const { screen, signal } = context;
  const password = passwordOf(values, context);
  if (values.showConfig) return showConfig(values, context);
  const gateway = await serve(gatewayOptions(values, password), (error) => {
    tellFailure("situ serve", error, failureOf(error), screen.isJson);
    process.exit(EXIT_FAILED);
  });
  const { host, port, socket, metricsPort, threads } = gateway;
  const { path } = values;
  screen.json({
    event: "listening",
    path,
    host,
    port,
    socket: socket ?? null,
    metricsPort: metricsPort ?? null,
    threads,
    pid: process.pid,
    hasPassword: password !== undefined,
  });
  const address = host.includes(":") ? `[${host}]` : host;
  screen.line(
    `situ: serving ${path} on ${address}:${port}${socket === undefined ? "" : ` and ${socket}`}`,
  );
  const more = [
    threads === 1 ? "one thread" : `${threads} threads`,
    password === undefined ? "no password" : "with a password",
    ...(metricsPort === undefined ? [] : [`metrics on http://${address}:${metricsPort}/metrics`]),
  ];
  screen.line(screen.dim(`      ${more.join(", ")}`));
  screen.line(screen.dim("      Press Ctrl-C to stop"));
  await untilStopped(signal);
  await gateway.close();
  screen.json({ event: "closed", path });
  screen.line("situ: closed");
  return EXIT_OK;
};

/** The file counts more: who names it on the command line means it. */
function passwordOf(
  { passwordFile, password }: OptionValues<"serve">,
  { screen }: Context,
): string | undefined {
  if (passwordFile === undefined) return password;
  let text: string;
  try {
    text = readFileSync(passwordFile, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(`the password file ${passwordFile} cannot be read: ${code}`);
  }
  for (const warning of readableByOthers(passwordFile))
    screen.note(`situ serve: warning: ${warning}`);
  const line = text.split(/\r?\n/, 1)[0];
  if (line === "")
    throw new UsageError(
      `the first line of ${passwordFile} is empty, but it should be the password`,
    );
  return line;
}

function gatewayOptions(
  values: OptionValues<"serve">,
  password: string | undefined,
): GatewayOptions {
  const { path, host, port, socket, threads, metricsPort, memory, durability } = values;
  const { maxClients, maxBulk, maxRequest, maxPipeline, maxOutput } = values;
  const given = {
    path,
    host,
    port,
    socket,
    threads,
    password,
    metricsPort,
    memoryBytes: memory,
    durability,
    maxClients,
    maxBulkBytes: maxBulk,
    maxRequestBytes: maxRequest,
    maxPipeline,
    maxOutputBytes: maxOutput,
  };
  // What was not said has its default there, and is not there at all.
  const said = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(said) as unknown as GatewayOptions;
}

/** All settings and where they are from; of secrets only whether there are any. */
function showConfig(values: OptionValues<"serve">, { screen, origins }: Context): number {
  const settings = Object.entries(SERVE.options)
    .filter(([name]) => name !== "showConfig" && name !== "json")
    .map(([name, option]) => {
      const value = values[name as keyof typeof values];
      const shown = option.isSecret && value !== undefined ? "(hidden)" : value;
      return { name, value: shown ?? null, from: origins[name] };
    });
  screen.json(Object.fromEntries(settings.map(({ name, value, from }) => [name, { value, from }])));
  const columns = [
    { head: "option" },
    { head: "value" },
    { head: "from" },
    { head: "environment" },
  ];
  const rows = settings.map(({ name, value, from }) => {
    const option = SERVE.options[name as keyof typeof SERVE.options];
    const flag = option.isSecret ? name : `--${flagOf(name)}`;
    return [flag, value === null ? "" : String(value), from, environmentOf(name, option)];
  });
  for (const line of renderTable(columns, rows, screen.columns, screen.dim)) screen.line(line);
  return EXIT_OK;
}
