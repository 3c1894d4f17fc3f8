// Waiting for something that nobody tells the end of: looked at again and again, with an end and a reason.

import { setTimeout as pause } from "node:timers/promises";

/** Milliseconds; the machine may be shared. */
export const LIMIT = Number(process.env.LIMIT ?? 60) * 1000;
export const START_LIMIT = 2 * LIMIT;

/** Returns what `look` returns once that is neither undefined nor false. Rejects after `limit` with the reason. */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  limit: number = LIMIT,
): Promise<T> {
  const end = Date.now() + limit;
  let problem: unknown;
  while (Date.now() < end) {
    try {
      const seen = await look();
      if (seen !== undefined && seen !== false) return seen;
      problem = undefined;
    } catch (error) {
      problem = error;
    }
    await pause(50);
  }
  throw new Error(`not within ${String(limit / 1000)} s: ${what}`, { cause: problem });
}
