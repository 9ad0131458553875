/**
 * Messages about the configuration over a fabric: JSON, for they are rare. The reply says nothing, and one
 * that is lost is made up for by the membership itself, which says everything again until it has been heard.
 */

import { MEMBERSHIP_KIND, type Request } from "../../fabric/fabric.ts";
import type { Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { configurationOf, packConfiguration } from "../configuration.ts";
import type { MembershipMessage } from "./messages.ts";

export class MembershipRequest implements Request {
  readonly kind = MEMBERSHIP_KIND;
  readonly #text: string;

  constructor(message: MembershipMessage) {
    const isNew = message.what === "new configuration";
    const packed = isNew && { configuration: packConfiguration(message.configuration) };
    this.#text = JSON.stringify({ ...message, ...packed });
  }

  encode(out: Writer): void {
    out.text(this.#text);
  }

  replied(): void {}

  failed(): void {}
}

/** What a node says, checked; `from` names it in errors. */
export function membershipMessageOf(text: string, from: string): MembershipMessage {
  const refuse = (why: string): never => {
    throw new SituError("SITU_PROTOCOL", `${from} says of its membership: ${why}`);
  };
  let values: Record<string, unknown>;
  try {
    values = Object(JSON.parse(text)) as Record<string, unknown>;
  } catch {
    return refuse("what is no JSON");
  }
  const { what } = values;
  const count = (name: string): number =>
    Number.isSafeInteger(values[name]) && (values[name] as number) >= 0
      ? (values[name] as number)
      : refuse(`${name} is no count`);
  const name = (key: string): string =>
    typeof values[key] === "string" ? values[key] : refuse(`${key} is not a string`);
  // Checked as the only node of a configuration.
  const node = (key: string) => configurationOf({ nodes: [values[key]] }, from).nodes[0];
  switch (what) {
    case "probe":
      return { what, configurationId: count("configurationId"), attempt: count("attempt") };
    case "probed":
      return {
        what,
        configurationId: count("configurationId"),
        attempt: count("attempt"),
        instance: name("instance"),
        hasManager: values.hasManager === true,
        joining: values.joining === undefined ? undefined : node("joining"),
      };
    case "new configuration":
      return { what, configuration: configurationOf(values.configuration, from) };
    case "acknowledged": {
      const remainingMs = values.remainingMs as number;
      if (!(remainingMs >= 0)) return refuse("remainingMs is no time");
      return {
        what,
        configurationId: count("configurationId"),
        instance: name("instance"),
        remainingMs,
      };
    }
    case "committed":
      return { what, configurationId: count("configurationId") };
    case "join":
      return { what, node: node("node"), hasItsData: values.hasItsData === true };
    case "filled": {
      const { partitions } = values;
      const isCount = (each: unknown): boolean => Number.isSafeInteger(each) && Number(each) >= 0;
      if (!Array.isArray(partitions) || !partitions.every(isCount)) {
        return refuse("partitions is no list of numbers");
      }
      return {
        what,
        configurationId: count("configurationId"),
        instance: name("instance"),
        partitions: partitions as number[],
      };
    }
    case "refused":
      return { what, instance: name("instance"), why: name("why") };
    default:
      return refuse("what is not known");
  }
}
