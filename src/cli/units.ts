/** Sizes and times as people write them in options; runtime/units.ts shows them. */

const SIZE_UNITS: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  k: 2 ** 10,
  kib: 2 ** 10,
  kb: 1e3,
  m: 2 ** 20,
  mib: 2 ** 20,
  mb: 1e6,
  g: 2 ** 30,
  gib: 2 ** 30,
  gb: 1e9,
  t: 2 ** 40,
  tib: 2 ** 40,
  tb: 1e12,
};
const TIME_UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1e3,
  min: 60e3,
  h: 3600e3,
};

function measured(text: unknown, units: Readonly<Record<string, number>>): number | undefined {
  if (typeof text !== "string") return undefined;
  const found = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim());
  if (found === null) return undefined;
  const unit = found[2].toLowerCase();
  return Object.hasOwn(units, unit) ? Number(found[1]) * units[unit] : undefined;
}

/** Bytes of a size as "64MiB"; undefined if it is none. */
export function sizeOf(text: unknown): number | undefined {
  const bytes = measured(text, SIZE_UNITS);
  return bytes !== undefined && Number.isSafeInteger(Math.round(bytes))
    ? Math.round(bytes)
    : undefined;
}

/** Milliseconds of a time as "1.5s"; undefined if it is none. */
export function durationOf(text: unknown): number | undefined {
  return measured(text, TIME_UNITS);
}
