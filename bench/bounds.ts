/** The goals of the bench, and the least that must be kept: ratios to the bare plugin where nothing else is said. */
export interface Bound {
  readonly goal: number
  readonly must: number
}

export const bounds = {
  signedIn: { goal: 0.72, must: 0.82 },
  public: { goal: 0.65, must: 0.75 },
  shaped: { goal: 0.85, must: 1 },
  shapingByHand: { goal: 1.1, must: 1.2 },
  /** Requests per CPU second, to the Express stack: more is better. */
  express: { goal: 3.2, must: 2.9 },
  addedLatency: { goal: 0.6, must: 0.8 },
  transfer: { goal: 1, must: 1.1 },
  start: { goal: 0.6, must: 0.9 },
  /** Megabytes. */
  residentAtRest: { goal: 90, must: 110 },
  /** Per cent, of load and of reloads. */
  residentGrowth: { goal: 10, must: 20 },
  floodedP99: { goal: 0.3, must: 0.5 },
  residentAfterFlood: { goal: 1.05, must: 1.1 }
} as const satisfies Readonly<Record<string, Bound>>
