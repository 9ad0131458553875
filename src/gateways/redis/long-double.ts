/**
 * C's long double, in which Redis computes INCRBYFLOAT and HINCRBYFLOAT: 64 bits of mantissa on the
 * machines that it is used on, so that 0.1 and 0.2 make 0.3 when 17 decimals are shown. The numbers
 * of JavaScript have 53 bits, which would show another sum; so this is done in whole numbers of any
 * size.
 *
 * A value is mantissa · 2^exponent; each result is rounded once, to the nearest, ties to even.
 */

export interface LongDouble {
  /** Up to 2^64 on either side of zero. */
  readonly mantissa: bigint;
  /** Infinity: the value is infinite, with the mantissa's sign. */
  readonly exponent: number;
}

const MANTISSA_BITS = 64;
/** Of the last bit of the smallest numbers. */
const MIN_EXPONENT = -16_445;
/** The largest is below 2^16384. */
const MAX_BITS = 16_384;
/** Beyond these powers of ten, with room to spare, nothing is left to compute. */
const MAX_DECIMAL = 5_000;
/** Redis reads no longer text as a number (MAX_LONG_DOUBLE_CHARS). */
const MAX_CHARACTERS = 5 * 1024 - 1;
/** Shown after the point ("%.17Lf"). */
const DECIMALS = 17;
const SCALE = 10n ** BigInt(DECIMALS);

const ZERO: LongDouble = { mantissa: 0n, exponent: 0 };

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i;
const HEXADECIMAL = /^([+-]?)0x([\da-f]*)(?:\.([\da-f]*))?(?:p([+-]?\d+))?$/i;
const INFINITE = /^([+-]?)inf(?:inity)?$/i;

export function isInfinite({ exponent }: LongDouble): boolean {
  return exponent === Number.POSITIVE_INFINITY;
}

/** What strtold takes as a whole; undefined if it is no number, or too large or small for one. */
export function parseLongDouble(bytes: Uint8Array): LongDouble | undefined {
  if (bytes.length === 0 || bytes.length > MAX_CHARACTERS) return undefined;
  const text = String.fromCharCode(...bytes);
  const decimal = DECIMAL.exec(text);
  if (decimal !== null) return fromDecimal(decimal);
  const hexadecimal = HEXADECIMAL.exec(text);
  if (hexadecimal !== null) return fromHexadecimal(hexadecimal);
  const infinite = INFINITE.exec(text);
  if (infinite === null) return undefined;
  return { mantissa: infinite[1] === "-" ? -1n : 1n, exponent: Number.POSITIVE_INFINITY };
}

/** The sum as Redis stores it; undefined if it is infinite or not a number. */
export function sumOf(a: LongDouble, b: LongDouble): string | undefined {
  if (isInfinite(a) || isInfinite(b)) return undefined;
  const sum = add(a, b);
  return isInfinite(sum) ? undefined : format(sum);
}

/** Both must be finite. */
function add(a: LongDouble, b: LongDouble): LongDouble {
  const exponent = Math.min(a.exponent, b.exponent);
  const sum = aligned(a, exponent) + aligned(b, exponent);
  return round(sum, exponent, false);
}

/** With up to 17 decimals, no zeros at the end and no exponent ("%.17Lf"). */
function format({ mantissa, exponent }: LongDouble): string {
  const isNegative = mantissa < 0n;
  const scaled = shiftToEven((isNegative ? -mantissa : mantissa) * SCALE, exponent);
  if (scaled === 0n) return "0";
  const digits = scaled.toString().padStart(DECIMALS + 1, "0");
  const whole = digits.slice(0, -DECIMALS);
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, "");
  return `${isNegative ? "-" : ""}${whole}${fraction === "" ? "" : `.${fraction}`}`;
}

function fromDecimal(parts: RegExpExecArray): LongDouble | undefined {
  const [, sign, whole, fraction = "", power = "0"] = parts;
  if (whole === "" && fraction === "") return undefined;
  const digits = BigInt(whole + fraction);
  if (digits === 0n) return ZERO;
  const exponent = Number(power) - fraction.length;
  const magnitude = digits.toString().length + exponent;
  if (magnitude > MAX_DECIMAL || magnitude < -MAX_DECIMAL) return undefined;
  const signed = sign === "-" ? -digits : digits;
  const value =
    exponent >= 0
      ? round(signed * 10n ** BigInt(exponent), 0, false)
      : quotient(signed, 10n ** BigInt(-exponent));
  return inRange(value);
}

function fromHexadecimal(parts: RegExpExecArray): LongDouble | undefined {
  const [, sign, whole, fraction = "", power = "0"] = parts;
  if (whole === "" && fraction === "") return undefined;
  const digits = BigInt(`0x${whole}${fraction}`);
  if (digits === 0n) return ZERO;
  const exponent = Number(power) - 4 * fraction.length;
  if (Math.abs(exponent) > 2 * MAX_BITS + 4 * MAX_CHARACTERS) return undefined;
  return inRange(round(sign === "-" ? -digits : digits, exponent, false));
}

function inRange(value: LongDouble): LongDouble | undefined {
  return value.mantissa === 0n || isInfinite(value) ? undefined : value;
}

function aligned({ mantissa, exponent }: LongDouble, to: number): bigint {
  return mantissa << BigInt(exponent - to);
}

/** n / d with 64 bits, for a quotient that is not whole. */
function quotient(n: bigint, d: bigint): LongDouble {
  const isNegative = n < 0n;
  const dividend = isNegative ? -n : n;
  // Two bits more than are kept decide how it is rounded, together with the rest.
  const shift = Math.max(0, MANTISSA_BITS + 2 + bits(d) - bits(dividend));
  const shifted = dividend << BigInt(shift);
  const result = shifted / d;
  const value = isNegative ? -result : result;
  return round(value, -shift, shifted !== result * d);
}

/** `hasRest`: the value is a little farther from zero than mantissa · 2^exponent. */
function round(mantissa: bigint, exponent: number, hasRest: boolean): LongDouble {
  if (mantissa === 0n) return ZERO;
  const isNegative = mantissa < 0n;
  let value = isNegative ? -mantissa : mantissa;
  const excess = Math.max(bits(value) - MANTISSA_BITS, MIN_EXPONENT - exponent);
  if (excess > 0) {
    // The rest makes what looks like a tie more than one: one more bit behind the others.
    value = shiftToEven((value << 1n) | (hasRest ? 1n : 0n), -excess - 1);
    exponent += excess;
  }
  if (bits(value) + exponent > MAX_BITS) exponent = Number.POSITIVE_INFINITY;
  return { mantissa: isNegative ? -value : value, exponent };
}

/** value · 2^shift as the nearest whole number, ties to even. */
function shiftToEven(value: bigint, shift: number): bigint {
  if (shift >= 0) return value << BigInt(shift);
  const places = BigInt(-shift);
  const result = value >> places;
  const rest = value - (result << places);
  const half = 1n << (places - 1n);
  const isUp = rest > half || (rest === half && (result & 1n) === 1n);
  return isUp ? result + 1n : result;
}

function bits(value: bigint): number {
  return value === 0n ? 0 : value.toString(16).length * 4 - leadingZeros(value);
}

/** Of the first hexadecimal digit. */
function leadingZeros(value: bigint): number {
  return Math.clz32(Number.parseInt(value.toString(16)[0], 16)) - 28;
}
