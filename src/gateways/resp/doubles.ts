/**
 * Doubles as Redis 7.0 writes them into replies: printf's "%.17g" (networking.c, addReplyDouble),
 * which is 17 significant digits without the zeros at the end. 0.1 is 0.10000000000000001.
 */

const SIGNIFICANT_DIGITS = 17;

/** Beyond, a whole number may have an exponent or digits that its shortest form does not show. */
const PLAIN_BELOW = 1e15;

export function formatDouble(value: number): string {
  if (Object.is(value, -0)) return "-0";
  if (Number.isInteger(value) && value < PLAIN_BELOW && value > -PLAIN_BELOW) return String(value);
  if (Number.isNaN(value)) return "nan";
  if (value === Number.POSITIVE_INFINITY) return "inf";
  if (value === Number.NEGATIVE_INFINITY) return "-inf";
  return value < 0 ? `-${formatPositive(-value)}` : formatPositive(value);
}

function formatPositive(value: number): string {
  const [mantissa, power] = rounded(value).split("e");
  const exponent = Number(power);
  const digits = mantissa.replace(".", "").replace(/0+$/, "");
  if (exponent < -4 || exponent >= SIGNIFICANT_DIGITS) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${digits[0]}${fraction}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${digits}`;
  if (digits.length <= exponent + 1) return digits.padEnd(exponent + 1, "0");
  return `${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
}

/**
 * In exponential form. Where the value lies exactly between two numbers of 17 digits, JavaScript
 * takes the larger one and C the even one. Such a value has 18 digits, and ends with a 5.
 */
function rounded(value: number): string {
  const up = value.toExponential(SIGNIFICANT_DIGITS - 1);
  const more = value.toExponential(60);
  if (!/^\d\.\d{16}50+e/.test(more)) return up;
  const lastDigit = more.charCodeAt(SIGNIFICANT_DIGITS) - 48;
  if (lastDigit % 2 === 1) return up;
  return more.slice(0, SIGNIFICANT_DIGITS + 1) + more.slice(more.indexOf("e"));
}
