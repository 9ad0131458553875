/** Values of fields as they are kept in the catalogue, which is JSON. */

/** What JSON has no form for is an object with the name of its type. */
export type StoredValue =
  | null
  | boolean
  | number
  | string
  | { readonly type: "bigint" | "bytes" | "date" | "number" | "json"; readonly text: string };

export function storeValue(value: unknown): StoredValue {
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "number") {
    const isPlain = Number.isFinite(value) && !Object.is(value, -0);
    return isPlain ? value : { type: "number", text: Object.is(value, -0) ? "-0" : String(value) };
  }
  if (typeof value === "bigint") return { type: "bigint", text: String(value) };
  if (value instanceof Date) return { type: "date", text: String(value.getTime()) };
  if (value instanceof Uint8Array) {
    return { type: "bytes", text: Buffer.from(value).toString("base64") };
  }
  return { type: "json", text: JSON.stringify(value) };
}

export function loadValue(stored: StoredValue): unknown {
  if (typeof stored !== "object" || stored === null) return stored;
  switch (stored.type) {
    case "bigint":
      return BigInt(stored.text);
    case "bytes":
      return new Uint8Array(Buffer.from(stored.text, "base64"));
    case "date":
      return new Date(Number(stored.text));
    case "number":
      return Number(stored.text);
    default:
      return JSON.parse(stored.text);
  }
}
