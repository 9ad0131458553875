/**
 * Describe: the first message of a client, and of a node to another: who are you, and what is the
 * configuration? And open table: makes a table known to a node, and says where it lies there, or lists those that there are.
 */

import { DESCRIBE_KIND, type Incoming, type NodeId } from "../fabric/fabric.ts";
import type { Reader, Writer } from "../fabric/wire.ts";
import { OPEN_TABLE } from "../protocols/kinds.ts";
import { Message } from "../protocols/message.ts";
import type { Schema } from "../tables/schema.ts";
import { type Configuration, configurationOf, packConfiguration } from "./configuration.ts";
import type { NodeService } from "./service.ts";

/** What a node says of itself. */
export interface Description {
  readonly node: NodeId;
  /** Another one after each start. */
  readonly instance: string;
  readonly configuration: Configuration;
  /** The name of the protocol's table of places. */
  readonly protocol: string;
}

export class Describe extends Message {
  readonly kind = DESCRIBE_KIND;
  description: Description | undefined;

  encode(_out: Writer): void {}

  protected decode(reply: Reader): void {
    const { node, instance, configuration, protocol } = JSON.parse(reply.text()) as Description;
    this.description = {
      node,
      instance,
      configuration: configurationOf(configuration, `node ${this.to}`),
      protocol,
    };
  }
}

/** At the node. */
export function serveDescribe({ view }: NodeService, incoming: Incoming): void {
  const { self, instance, configuration, protocol } = view.current;
  const said: { [Key in keyof Description]: unknown } = {
    node: self,
    instance,
    configuration: packConfiguration(configuration),
    protocol: protocol.name,
  };
  incoming.reply().text(JSON.stringify(said));
}

export class OpenTable extends Message {
  readonly kind = OPEN_TABLE;
  /** JSON: where the table lies at the node, for lookups by verb. */
  place = "";
  readonly #schema: string;

  constructor(to: NodeId, schema: string) {
    super(to);
    this.#schema = schema;
  }

  encode(out: Writer): void {
    out.text(this.#schema);
  }

  protected decode(reply: Reader): void {
    this.place = reply.text();
  }
}

/** OPEN-TABLE of no schema: tells those of all tables instead. */
export class ListTables extends Message {
  readonly kind = OPEN_TABLE;
  schemas: Schema[] = [];

  encode(out: Writer): void {
    out.text("");
  }

  protected decode(reply: Reader): void {
    const told = JSON.parse(reply.text()) as string[];
    this.schemas = told.map((schema) => JSON.parse(schema) as Schema);
  }
}

/** At the node. */
export function serveOpenTable({ tables }: NodeService, incoming: Incoming): void {
  const schema = incoming.body.text();
  const said = schema === "" ? JSON.stringify(tables.schemas()) : tables.open(schema);
  incoming.reply().text(said);
}
