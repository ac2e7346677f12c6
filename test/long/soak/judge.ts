/** Knows of each session what its user may be told, and notes every answer that is not that. */

export type State =
  /** Signed in, and nobody asked for the end. */
  | 'alive'
  /** The end was asked for, and not acknowledged: either answer is right. */
  | 'unsure'
  /** The end was acknowledged. */
  | 'closed'

export interface Session {
  readonly user: string
  readonly cookie: string
  readonly openedAt: number
  state: State
  /** When the end was acknowledged. */
  closedAt: number
}

interface Answer {
  /** 0 without one. */
  readonly status: number
  readonly body: string
}

export interface Judge {
  readonly sessions: () => readonly Session[]
  readonly problems: readonly string[]
  readonly counts: Readonly<Record<string, number>>
  /** The longest that a closed session was still accepted. */
  readonly stalestMs: () => number
  /** Sessions that are lost without being closed, where the scenario allows it. */
  readonly lost: () => number
  readonly opened: (user: string, cookie: string) => void
  readonly closing: (sessions: readonly Session[]) => void
  /** The end was acknowledged. */
  readonly closed: (sessions: readonly Session[]) => void
  /**
   * Somebody used a session.
   * @param before how it stood when the request began, at `beganAt`
   */
  readonly used: (session: Session, before: State, beganAt: number, answer: Answer) => void
  readonly odd: (what: string) => void
  readonly count: (what: string) => void
  /** From now on those that were opened after `since` may be lost: their store was killed. */
  readonly mayLose: (since: number) => void
}

/** What docs/scaling.md promises. */
const boundMs = 2000
/** What was closed long ago is looked at no more. */
const rememberedMs = 180_000
const maxProblems = 100

export function createJudge(): Judge {
  let sessions: Session[] = []
  const problems: string[] = []
  const counts: Record<string, number> = {}
  const began = performance.now()
  const mayLose: Array<{ since: number; until: number }> = []
  let stalestMs = 0
  let lost = 0
  const odd = (what: string) => {
    const at = ((performance.now() - began) / 1000).toFixed(1)
    if (problems.length < maxProblems) problems.push(`${at} s: ${what}`)
  }
  const isExcused = ({ openedAt }: Session) =>
    mayLose.some(({ since, until }) => openedAt >= since && openedAt <= until)
  return {
    sessions: () => sessions,
    problems,
    counts,
    stalestMs: () => Math.round(stalestMs),
    lost: () => lost,
    odd,
    count: what => {
      counts[what] = (counts[what] ?? 0) + 1
    },
    opened: (user, cookie) => {
      const now = performance.now()
      const isFresh = ({ state, closedAt }: Session) =>
        state === 'alive' || now - closedAt < rememberedMs
      sessions = sessions.filter(isFresh)
      sessions.push({ user, cookie, openedAt: now, state: 'alive', closedAt: now })
    },
    closing: ended => {
      for (const session of ended) if (session.state === 'alive') session.state = 'unsure'
    },
    closed: ended => {
      for (const session of ended) {
        if (session.state !== 'closed') session.closedAt = performance.now()
        session.state = 'closed'
      }
    },
    used: (session, before, beganAt, { status, body }) => {
      if (before === 'alive' && session.state === 'alive' && status === 401) {
        session.state = 'unsure'
        if (isExcused(session)) lost++
        else {
          odd(
            `401 for a session of ${session.user} that nobody closed, ${age(session)} s old: ${body}`
          )
        }
      }
      const lateMs = beganAt - session.closedAt
      if (before === 'closed' && status === 200) {
        stalestMs = Math.max(stalestMs, lateMs)
        if (lateMs > boundMs) {
          odd(`200 for a session that was closed ${Math.round(lateMs)} ms before`)
        }
      }
    },
    mayLose: since => {
      mayLose.push({ since, until: performance.now() })
    }
  }
}

const age = ({ openedAt }: Session) => Math.round((performance.now() - openedAt) / 1000)
