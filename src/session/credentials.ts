/** New credentials of back-ends in sessions: exchanged ones, and those that a response changed. */
import { recentlyUsed } from '../bounded-map.ts'
import { StoreUnavailable } from './store.ts'
import type { Credential, Evaluation, Live, Session } from './types.ts'

interface Options {
  /** The session as the store has it now. */
  readonly reread: (live: Live) => Promise<Evaluation>
  /** Writes a session by compare-and-set. */
  readonly replace: (live: Live, session: Session) => Promise<boolean>
}

interface Held {
  readonly live: Live
  readonly change: Credential
}

const maxTries = 3
/** A back-end may change a cookie with each response. */
const writeEveryMs = 5000
const maxHeld = 10_000

export class Credentials {
  readonly #options: Options
  /** What responses changed: used here at once, and written a little later. */
  readonly #held = recentlyUsed<Held>(maxHeld)
  /** Sessions whose credential was written in this turn. */
  readonly #justWritten = new Set<string>()
  #turns: NodeJS.Timeout | undefined

  constructor(options: Options) {
    this.#options = options
  }

  /**
   * Puts a credential that was exchanged for that of `from` into the session.
   * @returns the session with it, or with the one that another process has put there meanwhile; or
   *   why it is none any more
   * @throws StoreUnavailable
   */
  async renew(from: Live, credential: Credential): Promise<Evaluation> {
    return await this.#write(from, session =>
      isSameCredential(session, from.session) ? credential : undefined
    )
  }

  /**
   * Takes what a back-end has changed of a credential in an ordinary response: it is used here at
   * once, and written at most once in 5 s.
   */
  take(live: Live, change: Credential): void {
    const { key } = live
    this.#held.set(key, { live, change: { ...this.#held.peek(key)?.change, ...change } })
    if (!this.#justWritten.has(key)) void this.#writeHeld(key)
    this.#turns ??= setInterval(() => this.#turn(), writeEveryMs).unref()
  }

  #turn(): void {
    this.#justWritten.clear()
    for (const key of this.#held.keys()) void this.#writeHeld(key)
    if (this.#held.size > 0) return
    clearInterval(this.#turns)
    this.#turns = undefined
  }

  /** The session with the credential that this process holds for it, if it holds one. */
  withHeld(live: Live): Live {
    const change = this.#held.size === 0 ? undefined : this.#held.get(live.key)?.change
    if (change === undefined) return live
    const credential = { ...live.session.credential, ...change }
    return { ...live, session: { ...live.session, credential } }
  }

  /** Where the store is away, it is asked again at the next turn. */
  async #writeHeld(key: string): Promise<void> {
    const held = this.#held.peek(key)
    if (held === undefined) return
    this.#justWritten.add(key)
    try {
      await this.#write(held.live, ({ credential }) => ({ ...credential, ...held.change }))
      // Another response may have changed it while it was written.
      if (this.#held.peek(key) === held) this.#held.delete(key)
    } catch {}
  }

  /** @param next undefined for a session that needs no change any more */
  async #write(
    live: Live,
    next: (session: Session) => Credential | undefined
  ): Promise<Evaluation> {
    const { reread, replace } = this.#options
    for (let tries = 0; tries < maxTries; tries++) {
      const current = await reread(live)
      const credential = 'live' in current ? next(current.live.session) : undefined
      if (!('live' in current) || credential === undefined) return current
      const session = { ...current.live.session, credential }
      if (await replace(current.live, session)) return { live: { ...current.live, session } }
    }
    throw new StoreUnavailable(new Error('the session changed whenever it was to be written'))
  }
}

/** Whether two states of a session have the same token: nothing was exchanged in between. */
export function isSameCredential({ credential: a }: Session, { credential: b }: Session): boolean {
  return a?.expiresAt === b?.expiresAt && a?.token === b?.token
}
