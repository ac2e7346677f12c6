/** Knows of each session what its user may be told, and notes every answer that is not that. */
import type { Answer } from './call.ts'

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

export type Judge = ReturnType<typeof createJudge>

/** What docs/operations.md promises. */
const boundMs = 2000
/** What was closed long ago is looked at no more. */
const rememberedMs = 180_000
const maxProblems = 100

export function createJudge() {
  let sessions: Session[] = []
  const problems: string[] = []
  const counts: Record<string, number> = {}
  const began = performance.now()
  let stalestMs = 0
  const odd = (what: string) => {
    const at = ((performance.now() - began) / 1000).toFixed(1)
    if (problems.length < maxProblems) problems.push(`${at} s: ${what}`)
  }
  return {
    sessions: (): readonly Session[] => sessions,
    problems,
    counts,
    /** The longest that a closed session was still accepted. */
    stalestMs: () => Math.round(stalestMs),
    odd,
    count: (what: string) => {
      counts[what] = (counts[what] ?? 0) + 1
    },
    opened: (user: string, cookie: string): Session => {
      const now = performance.now()
      const isFresh = ({ state, closedAt }: Session) =>
        state === 'alive' || now - closedAt < rememberedMs
      sessions = sessions.filter(isFresh)
      const session: Session = { user, cookie, openedAt: now, state: 'alive', closedAt: now }
      sessions.push(session)
      return session
    },
    closing: (ended: readonly Session[]) => {
      for (const session of ended) if (session.state === 'alive') session.state = 'unsure'
    },
    /** The end was acknowledged. */
    closed: (ended: readonly Session[]) => {
      for (const session of ended) {
        if (session.state !== 'closed') session.closedAt = performance.now()
        session.state = 'closed'
      }
    },
    /**
     * Somebody used a session.
     * @param before how it stood when the request began, at `beganAt`
     */
    used: (
      session: Session,
      before: State,
      beganAt: number,
      { status, text }: Pick<Answer, 'status' | 'text'>
    ) => {
      if (before === 'alive' && session.state === 'alive' && status === 401) {
        session.state = 'unsure'
        const age = Math.round((performance.now() - session.openedAt) / 1000)
        odd(`401 for a session of ${session.user} that nobody closed, ${age} s old: ${text}`)
      }
      const lateMs = beganAt - session.closedAt
      if (before === 'closed' && status === 200) {
        stalestMs = Math.max(stalestMs, lateMs)
        if (lateMs > boundMs) {
          odd(`200 for a session that was closed ${Math.round(lateMs)} ms before`)
        }
      }
    }
  }
}
