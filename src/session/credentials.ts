import { setTimeout as wait } from 'node:timers/promises'
import { RecentlyUsed } from '../bounded-map.ts'
import { StoreUnavailable } from './store.ts'
import type { Credential, Evaluation, Live, Renewed, Session } from './types.ts'

interface Records {
  read(key: string): Promise<Evaluation>
  replace(live: Live, session: Session): Promise<boolean>
}

interface Held {
  readonly live: Live
  readonly change: Credential
  /** Of the token in the place of which the response gave the one of `change`. */
  readonly expiresAt: number | undefined
}

const maxTries = 3
const writeEveryMs = 5000
const maxHeld = 10_000

export class Credentials {
  readonly #records: Records
  /** What responses changed: used here at once, and written a little later. */
  readonly #held = new RecentlyUsed<Held>(maxHeld)
  /** Sessions whose credential is written, if it changes, whenever one of these comes. */
  readonly #turns = new Set<string>()

  constructor(records: Records) {
    this.#records = records
  }

  /** Puts in what an upstream, or else the source, gave for the credential of `from`. */
  async renew(from: Live, { credential, identity }: Renewed, upstream?: string) {
    return await this.#write(from, session =>
      isSameCredential(session, from.session, upstream)
        ? { ...withCredential(session, credential, upstream), ...(identity && { identity }) }
        : undefined
    )
  }

  /** A back-end may change it with each response: used at once, written at most once in 5 s. */
  take(live: Live, change: Credential): void {
    const { key, session } = live
    const former = this.#held.peek(key)
    const isToken = change.token !== undefined
    const expiresAt = isToken ? session.credential?.expiresAt : former?.expiresAt
    this.#held.set(key, { live, change: { ...former?.change, ...change }, expiresAt })
    if (!this.#turns.has(key)) void this.#writeInTurns(key)
  }

  async #writeInTurns(key: string): Promise<void> {
    this.#turns.add(key)
    for (let held = this.#held.peek(key); held !== undefined; held = this.#held.peek(key)) {
      const { live } = held
      try {
        await this.#write(live, session => ({ ...session, credential: changed(session, held) }))
        // Another response may have changed it while it was written.
        if (this.#held.peek(key) === held) this.#held.delete(key)
      } catch {
        // The store is away: it is asked again at the next turn.
      }
      await wait(writeEveryMs, undefined, { ref: false })
    }
    this.#turns.delete(key)
  }

  withHeld<L extends Pick<Live, 'key' | 'session'>>(live: L): L {
    const held = this.#held.size === 0 ? undefined : this.#held.get(live.key)
    if (held === undefined) return live
    return { ...live, session: { ...live.session, credential: changed(live.session, held) } }
  }

  async #write(live: Live, next: (session: Session) => Session | undefined): Promise<Evaluation> {
    for (let tries = 0; tries < maxTries; tries++) {
      const current = await this.#records.read(live.key)
      const session = 'live' in current ? next(current.live.session) : undefined
      if (!('live' in current) || session === undefined) return current
      const isDone = await this.#records.replace(current.live, session)
      if (isDone) return { live: { ...current.live, session } }
    }
    throw new StoreUnavailable(new Error('the session changed whenever it was to be written'))
  }
}

/** A token that was exchanged meanwhile is newer than what a response gave for the one before. */
function changed({ credential }: Session, { change, expiresAt }: Held): Credential {
  const { token, ...others } = change
  const isLatest = token !== undefined && credential?.expiresAt === expiresAt
  return { ...credential, ...others, ...(isLatest && { token }) }
}

export function isSameCredential(one: Session, other: Session, upstream?: string): boolean {
  const [a, b] = [credentialIn(one, upstream), credentialIn(other, upstream)]
  return a?.expiresAt === b?.expiresAt && a?.token === b?.token
}

/** Without the name of an upstream it is that of the source. */
export function credentialIn(
  { credential, tokens = {} }: Pick<Session, 'credential' | 'tokens'>,
  upstream?: string
): Credential | undefined {
  if (upstream === undefined) return credential
  return Object.hasOwn(tokens, upstream) ? tokens[upstream] : undefined
}

export function withCredential(session: Session, credential: Credential, upstream?: string) {
  return upstream === undefined
    ? { ...session, credential }
    : { ...session, tokens: { ...session.tokens, [upstream]: credential } }
}
