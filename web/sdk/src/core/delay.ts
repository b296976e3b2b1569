/**
 * How long to wait after failures in a row, in milliseconds: it doubles from half a second to a
 * minute and is spread over the upper half, so that clients that failed together do not come back
 * together. Random is from 0 up to 1.
 */
export function delay(failures: number, random: number): number {
  const full = Math.min(60_000, 500 * 2 ** Math.min(Math.max(failures - 1, 0), 20));
  return full / 2 + (full / 2) * random;
}
