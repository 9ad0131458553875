/** How etcd is reached: addresses, TLS, a user. Checked as it stands in a node's file. */

import { SituError } from "../../runtime/errors.ts";
import { show } from "../../runtime/show.ts";

export interface EtcdOptions {
  /** URLs of its members. */
  readonly endpoints: readonly string[];
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly user?: string;
  readonly password?: string;
}

/** What is said about a list of members, in messages. */
export function membersOf({ endpoints }: EtcdOptions): string {
  return endpoints.join(", ");
}

/** "host:port" or a URL, each. With TLS if the URL says so, or if there are certificates. */
export function endpointsOf(given: unknown, hasTls: boolean, from: string): readonly string[] {
  const list = typeof given === "string" ? [given] : given;
  if (!Array.isArray(list) || list.length === 0) {
    const why = `etcd is a list of its members, as in ["10.0.0.1:2379"], not ${show(given)}`;
    throw new SituError("SITU_CONFIG", `${from}: ${why}`);
  }
  return list.map((each: unknown) => endpointOf(each, hasTls, from));
}

function endpointOf(given: unknown, hasTls: boolean, from: string): string {
  const refuse = (): never => {
    const why = `write a member of etcd as "host:port" or as a URL, not ${show(given)}`;
    throw new SituError("SITU_CONFIG", `${from}: ${why}`);
  };
  if (typeof given !== "string") return refuse();
  const text = /^https?:\/\//.test(given) ? given : `${hasTls ? "https" : "http"}://${given}`;
  if (!URL.canParse(text)) return refuse();
  const { protocol, host, port, pathname, search, username } = new URL(text);
  const isPlain = pathname === "/" && search === "" && username === "";
  // 80 and 443 are left out of a URL that names them.
  if (!isPlain || (port === "" && !/:(80|443)\/?$/.test(text))) return refuse();
  return `${protocol}//${host}`;
}
