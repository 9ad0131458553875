/** The part of a node's file that says where the cluster is in etcd, and where the node listens. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { isClusterName, wholeNumbers } from "../cluster/configuration.ts";
import { type EtcdOptions, endpointsOf } from "../cluster/etcd/endpoints.ts";
import type { ClusterSettings } from "../cluster/etcd/forming.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { MAX_LEASE_MS, MAX_NODES, MAX_PARTITIONS, MIN_LEASE_MS } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

export interface EtcdCluster {
  readonly settings: ClusterSettings;
  readonly etcd: EtcdOptions;
  readonly domain: string | undefined;
  readonly listen: ListenAddress;
  /** Under which others reach it. */
  readonly advertised: string;
}

const KNOWN = [
  "cluster",
  "etcd",
  "backups",
  "partitions",
  "leaseMs",
  "domain",
  "etcdCa",
  "etcdCert",
  "etcdKey",
  "etcdUser",
  "etcdPassword",
  "etcdPasswordFile",
];
const DEFAULT_BACKUPS = 2;

export function isInEtcd(cluster: unknown): boolean {
  return typeof cluster === "object" && cluster !== null && "etcd" in cluster;
}

/** Checks it; paths are relative to `folder`. */
export function etcdClusterOf(
  given: unknown,
  listen: unknown,
  folder: string,
  from: string,
): EtcdCluster {
  const values = given as Record<string, unknown>;
  const refuse = (why: string): never => {
    throw new SituError("SITU_CONFIG", `${from}: ${why}`);
  };
  refuseUnknownOptions(`${from}: cluster`, values, KNOWN);
  const { cluster = "situ", backups = DEFAULT_BACKUPS, partitions, leaseMs, domain } = values;
  if (!isClusterName(cluster)) {
    return refuse(`cluster is a name of letters, digits, ".", "_" and "-", not ${show(cluster)}`);
  }
  if (domain !== undefined && !isClusterName(domain)) {
    return refuse(`domain is a name such as rack-1, not ${show(domain)}`);
  }
  const whole = wholeNumbers(refuse);
  const settings = {
    cluster,
    backups: whole(backups, "backups", 0, MAX_NODES - 1),
    partitions:
      partitions === undefined ? undefined : whole(partitions, "partitions", 1, MAX_PARTITIONS),
    leaseMs:
      leaseMs === undefined ? undefined : whole(leaseMs, "leaseMs", MIN_LEASE_MS, MAX_LEASE_MS),
  };
  const { host, port, advertise } = (listen ?? {}) as Record<string, unknown>;
  if (typeof host !== "string" || host === "") {
    return refuse('listen is the address of this node, as in { "host": "10.0.0.1", "port": 7000 }');
  }
  const advertised = advertise ?? host;
  if (typeof advertised !== "string" || ["", "0.0.0.0", "::"].includes(advertised)) {
    return refuse(
      `listen.advertise is the host under which others reach this node, not ${show(advertised)}`,
    );
  }
  const address = { host, port: whole(port, "listen.port", 1, 65535) };
  return { settings, etcd: etcdOf(values, folder, from), domain, listen: address, advertised };
}

function etcdOf(values: Record<string, unknown>, folder: string, from: string): EtcdOptions {
  const read = (name: string): string | undefined => {
    const path = values[name];
    if (path === undefined) return undefined;
    if (typeof path !== "string") {
      throw new SituError(
        "SITU_CONFIG",
        `${from}: ${name} is the path of a file, not ${show(path)}`,
      );
    }
    try {
      return readFileSync(resolve(folder, path), "utf8");
    } catch (cause) {
      const why = `${path} cannot be read: ${(cause as Error).message}`;
      throw new SituError("SITU_CONFIG", `${from}: ${why}`, { cause });
    }
  };
  const text = (name: string): string | undefined => {
    const value = values[name];
    if (value === undefined || (typeof value === "string" && value !== "")) return value;
    throw new SituError("SITU_CONFIG", `${from}: ${name} is a string, not ${show(value)}`);
  };
  const parts = { ca: read("etcdCa"), cert: read("etcdCert"), key: read("etcdKey") };
  const user = text("etcdUser");
  const password =
    read("etcdPasswordFile")?.trim() ?? text("etcdPassword") ?? process.env.SITU_ETCD_PASSWORD;
  if (user !== undefined && !password) {
    const how = "etcdPasswordFile, etcdPassword or SITU_ETCD_PASSWORD";
    throw new SituError("SITU_CONFIG", `${from}: etcdUser needs a password: set ${how}`);
  }
  const hasTls = Object.values(parts).some((each) => each !== undefined);
  return {
    endpoints: endpointsOf(values.etcd, hasTls, `${from}: cluster`),
    ...Object.fromEntries(Object.entries(parts).filter(([, each]) => each !== undefined)),
    ...(user === undefined ? {} : { user, password: password ?? "" }),
  };
}
