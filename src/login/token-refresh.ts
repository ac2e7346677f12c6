/** Gets back-ends' tokens, and renews them before they expire, once across all replicas. */
import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import { BoundedMap } from '../bounded-map.ts'
import { GatewayError } from '../errors/errors.ts'
import type { Trail } from '../observability/trail.ts'
import { credentialIn, isSameCredential, withCredential } from '../session/credentials.ts'
import type { Sessions } from '../session/sessions.ts'
import { liveIn, lock } from '../session/store.ts'
import type { Live } from '../session/types.ts'
import { steadyNow } from '../steady-clock.ts'
import { type CredentialSource, type SignOutOptions, signOutAtSource } from './credential-source.ts'

interface Options extends SignOutOptions {
  readonly sessions: Sessions
  readonly log: Pick<Logger, 'warn'>
}

const notRenewed = 'could not renew a back-end’s token, which is valid for a short time still'
const renewBeforeMs = 60_000
/** Longer than a renewal may take: where a replica dies during one, others wait for so long. */
const lockMs = 15_000
const lockRetryMs = 25
const maxPauses = 50_000
const maxMachines = 1000

export function createTokenRefresh(options: Options) {
  const { sessions, sources, log } = options
  const running = new Map<string, Promise<Live>>()
  /** By upstream and key of a session: until then its token is used, though it expires soon. */
  const pauses = new BoundedMap<number>(maxPauses)
  /** With the token of an upstream, by the same: those of machines, which no store has. */
  const machines = new BoundedMap<Live>(maxMachines)

  /** @throws GatewayError `session.upstream` when the back-end refuses; `upstream.*` when away */
  async function ensureFresh(lookedUp: Live, trail?: Trail, exchange?: CredentialSource) {
    const live = sessions.credentials.withHeld(lookedUp)
    const { credential, source: name } = live.session
    const source =
      credential?.expiresAt === undefined ? undefined : sources.find(each => each.name === name)
    const fresh = source?.renew === undefined ? live : await ensureToken(live, source, trail)
    return exchange === undefined ? fresh : await ensureToken(fresh, exchange, trail)
  }

  /** @param refused a token that the upstream took for one that is over @throws GatewayError */
  async function ensureToken(
    lookedUp: Live,
    issuer: CredentialSource,
    trail?: Trail,
    refused?: string
  ) {
    const key = `${issuer.upstream ?? ''} ${lookedUp.key}`
    const live = machines.peek(key) ?? sessions.credentials.withHeld(lookedUp)
    const credential = credentialIn(live.session, issuer.upstream)
    const isRefused = refused !== undefined && credential?.token === refused
    const isOver = credential === undefined || isRefused
    const end = isOver ? 0 : (credential.expiresAt ?? Infinity)
    if (Date.now() < end - renewBeforeMs) return live
    if (Date.now() < end && steadyNow() < (pauses.peek(key) ?? 0)) return live
    const getToken = async () => {
      const got = await issuer.renew?.(live.session, trail)
      if (got === undefined) throw new GatewayError('session.upstream')
      const session = withCredential(live.session, got.credential, issuer.upstream)
      machines.set(key, { ...live, session })
      return { ...live, session }
    }
    let renewal = running.get(key)
    if (renewal === undefined) {
      const isStored = live.sealed !== ''
      const renewing = isStored ? renewOnce(options, live, issuer, trail) : getToken()
      renewal = renewing.finally(() => {
        running.delete(key)
        pauses.set(key, steadyNow() + renewBeforeMs / 4)
      })
      running.set(key, renewal)
    }
    if (Date.now() >= end) return await renewal
    renewal.catch((err: unknown) => log.warn({ err }, notRenewed))
    return live
  }

  return { ensureFresh, ensureToken }
}

async function renewOnce(options: Options, live: Live, issuer: CredentialSource, trail?: Trail) {
  const { sessions, log } = options
  const { upstream } = issuer
  const [name, owner] = [`renew:${upstream ?? ''}:${live.key}`, randomUUID()]
  const until = steadyNow() + lockMs
  while (!(await lock(sessions.store, name, lockMs, owner))) {
    await wait(lockRetryMs)
    const current = await reread(sessions, live)
    if (!isSameCredential(current.session, live.session, upstream)) return current
    if (steadyNow() >= until) throw new GatewayError('upstream.timeout')
  }
  try {
    const current = await reread(sessions, live)
    if (!isSameCredential(current.session, live.session, upstream)) return current
    const renewal = await issuer.renew?.(current.session, trail)
    if (renewal === undefined) return await afterRefusal(sessions, current)
    const renewed = await sessions.credentials.renew(current, renewal, upstream)
    if ('ended' in renewed) {
      // It ended before it had the new token, which would stay valid.
      const { credential: _, tokens: __, ...others } = current.session
      const session = withCredential(others, renewal.credential, upstream)
      signOutAtSource(options, session, { log, trail })
    }
    return liveIn(renewed)
  } finally {
    // Where the store is away, it ends by itself.
    await sessions.store.addTo(name, owner, 0).catch(() => {})
  }
}

/** Another process may have been faster, where the source refused the token for that. */
async function afterRefusal(sessions: Sessions, live: Live): Promise<Live> {
  const current = await reread(sessions, live)
  if (!isSameCredential(current.session, live.session)) return current
  await sessions.end(live, 'upstream', { by: 'upstream' })
  throw new GatewayError('session.upstream')
}

async function reread(sessions: Sessions, { key }: Live): Promise<Live> {
  return liveIn(await sessions.read(key))
}
