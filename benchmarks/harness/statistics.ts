// Medians with their spread. A shared machine produces outliers on one side only, so means lie.

export interface Summary {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function summarize(values: readonly number[]): Summary {
  if (values.length === 0) throw new RangeError("nothing was measured");
  const sorted = [...values].sort((left, right) => left - right);
  const middle = sorted.length >> 1;
  const median =
    sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { median, min: sorted[0], max: sorted[sorted.length - 1] };
}

/**
 * One ratio per round: both sides of it met the same neighbours on the machine, which a ratio of
 * two medians would compare across different moments.
 */
export function ratiosPerRound(over: readonly number[], under: readonly number[]): number[] {
  if (over.length !== under.length) throw new RangeError("rounds do not pair up");
  return over.map((value, round) => value / under[round]);
}
