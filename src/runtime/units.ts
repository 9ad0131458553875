/** Sizes, times and counts as they are shown to people. */

const SHOWN_UNITS = ["KiB", "MiB", "GiB", "TiB"];

export function shownSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  let value = bytes;
  let unit = -1;
  while (value >= 1024 && unit < SHOWN_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = value >= 100 || Number.isInteger(value) ? 0 : 1;
  return `${value.toFixed(digits)} ${SHOWN_UNITS[unit]}`;
}

export function shownCount(value: number | bigint): string {
  return value.toLocaleString("en-US");
}

/** "1 row", "2 rows". */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${shownCount(value)} ${value === 1 ? one : many}`;
}

export function shownMs(ms: number): string {
  if (ms < 1) return `${(ms * 1e3).toFixed(0)} µs`;
  if (ms < 1e3) return `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
  if (ms < 120e3) return `${(ms / 1e3).toFixed(1)} s`;
  return `${(ms / 60e3).toFixed(1)} min`;
}
