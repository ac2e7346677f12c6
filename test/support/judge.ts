/** Knows of each session what its user may be told, and notes every answer that is not that. */
import { type Answer, type Call, callOnce } from './call.ts'
import { cookieIn, password } from './sign-in.ts'
import { until } from './until.ts'

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

export const profile = '/api/account/profile'
/** What docs/operations.md promises. */
const boundMs = 2000
/** What was closed long ago is looked at no more. */
const rememberedMs = 180_000
const maxProblems = 100
/** Longer than any time-out of the gateway: what takes longer hangs. */
const patienceMs = 20_000

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
    used: (session: Session, before: State, beganAt: number, { status, text }: Answer) => {
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

interface Options {
  readonly judge: Judge
  /** Told of each answer; without one the status is `none`. */
  readonly count?: (what: string, status: number | 'none') => void
  /** Whether an answer is as it has to be, beyond its status. */
  readonly isFit?: (answer: Answer) => boolean
  /** Whether Redis may have forgotten every session. */
  readonly isForgotten?: () => boolean
}

interface Place {
  readonly url: string
}

/** What people do with sessions at any gateway; the judge sees it all. */
export function judgedUsers({
  judge,
  count = (what, status) => judge.count(`${what} ${status}`),
  isFit = () => true,
  isForgotten = () => false
}: Options) {
  async function call(what: string, { url }: Place, path: string, options: Call) {
    const beganAt = performance.now()
    const timed = { timeoutMs: patienceMs, ...options }
    const answer = await callOnce(url + path, timed).catch((error: unknown) => {
      const afterMs = Math.round(performance.now() - beganAt)
      judge.odd(`${what}: ${path} got no answer, after ${afterMs} ms: ${String(error)}`)
      return undefined
    })
    count(what, answer?.status ?? 'none')
    return answer
  }

  async function judgedCall(what: string, at: Place, path: string, options: Call) {
    const answer = await call(what, at, path, options)
    if (answer === undefined) return undefined
    const { status, text } = answer
    if (![200, 401, 429, 503].includes(status) || !isFit(answer)) {
      judge.odd(`${what} is answered ${status} ${text}`)
    }
    return answer
  }

  async function use(session: Session, at: Place): Promise<number> {
    const { state, cookie } = session
    const beganAt = performance.now()
    const what = state === 'alive' ? 'profile' : `profile of ${state}`
    const answer = await judgedCall(what, at, profile, { headers: { cookie } })
    const mayBeLost = answer?.status === 401 && isForgotten()
    if (answer !== undefined && !mayBeLost) judge.used(session, state, beganAt, answer)
    return answer?.status ?? 0
  }

  return {
    call,
    use,
    signIn: async (user: string, at: Place): Promise<Session | undefined> => {
      const json = { username: user, password }
      const answer = await judgedCall('sign-in', at, '/api/auth/admin/login', { json })
      const cookie = cookieIn(answer?.headers['set-cookie'])
      if (answer?.status === 200) return judge.opened(user, cookie)
      if (cookie !== '') judge.odd('a sign-in that failed set a cookie')
      if (answer?.status === 401) judge.odd(`a sign-in was refused: ${answer.text}`)
      return undefined
    },
    /** @returns whether it is acknowledged */
    signOut: async (session: Session, at: Place): Promise<boolean> => {
      judge.closing([session])
      const headers = { cookie: session.cookie }
      const options = { method: 'POST', headers }
      const answer = await judgedCall('sign-out', at, '/api/account/logout', options)
      if (answer?.status === 200) judge.closed([session])
      return answer?.status === 200
    },
    /** Every session that is known, at every gateway, once it is surely known how it stands. */
    recount: async (places: readonly Place[]): Promise<void> => {
      for (const session of judge.sessions()) {
        for (const at of places) {
          let status = 0
          await until('it is surely known who is signed in', async () => {
            status = await use(session, at)
            return status === 200 || status === 401
          })
          if (session.state === 'closed' && status !== 401) judge.odd('a closed session lives')
        }
      }
    }
  }
}
