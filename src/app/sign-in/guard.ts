/** Bounds how often passwords may be guessed: by account, by address, and by both together. */
import { hash, randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { knownBrowserCookie, type LockoutConfig } from '../../config/schema/limits.ts'
import { GatewayError } from '../../errors/errors.ts'
import { type Bucket, partsOf, type Taken } from '../../limits/lockouts.ts'
import { SignInLines, timeIsOver } from '../../limits/sign-in-line.ts'
import { createSeal } from '../../session/seal.ts'
import { accountKey } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import { countedAddress } from '../hooks/address.ts'

export type SignInGuard = ReturnType<typeof createSignInGuard>
export type AttemptHandle = Awaited<ReturnType<SignInGuard>>

type Kind = 'account' | 'address' | 'accountAndAddress' | 'browser'

interface KindBucket extends Bucket {
  readonly kind: Kind
}

/** Within an hour, so many undecided attempts are no failures of an account. */
const undecidedRate = { max: 50, windowMs: 3_600_000, burst: 50 }
/** Wrong captchas of an account: where they are used up each more is a failure. */
export const challenge = 'challenge'

/** @param apart begins the keys of failures that are counted apart from those of the console */
export function createSignInGuard(gateway: Gateway, apart = '', browsers?: KnownBrowsers) {
  const { lockouts, counters } = gateway
  const lines = new SignInLines(lockouts)
  const bucketsOf = createBuckets(gateway, apart)

  /**
   * A failure before the password is judged. A known browser is counted by itself alone, so that
   * nobody can lock the owner out. @param username as it was typed
   * @param leaving aborted when the client leaves: then no password is judged for it
   * @throws GatewayError `limit.exceeded`, `login.locked`; the reason of `leaving`
   */
  return async (request: FastifyRequest, username: string, leaving: AbortSignal) => {
    const account = accountKey(username)
    const buckets = bucketsOf(request, account, browsers?.idOf(request, username))
    const taken = await lines.take(buckets, leaving)
    if (taken === timeIsOver || !taken.isTaken) {
      const refusal = refusalOf(buckets, taken)
      counters.onRefused(refusal.detail.limit ?? '')
      throw refusal
    }
    /** A failure may use up several buckets. */
    const reportLocks = (only?: Kind) => {
      for (const [index, bucket] of buckets.entries()) {
        const ms = taken.waitMs[index] ?? 0
        if (ms === 0 || (only ?? bucket.kind) !== bucket.kind) continue
        counters.onLocked(bucket.kind)
        const { kind, of } = partsOf(bucket)
        const who = { user: of.account, address: of.address }
        const fields = { event: 'login.lock', kind, ...who, seconds: Math.ceil(ms / 1000) }
        request.log.info(fields, 'too many failures: locked')
      }
    }
    const giveBack = async (those: readonly Bucket[]) => {
      await lockouts.giveBack(those, taken)
      lines.end(buckets)
    }
    if (leaving.aborted) await giveBack(buckets)
    leaving.throwIfAborted()
    return {
      refused: () => {
        reportLocks()
        lines.end(buckets)
      },
      /** The password was right, or was not judged. */
      refund: () => giveBack(buckets),
      /**
       * The captcha was wrong, or a source failed: of the address, and up to 50 an hour not of the
       * account. @param isFailure of the account as well @returns whether it counted as refused
       */
      undecided: async (isFailure: boolean) => {
        const bucket = { key: `${apart}${challenge} ${account}`, rate: undecidedRate }
        const isRefused = isFailure || !(await lockouts.take([bucket])).isTaken
        reportLocks(isRefused ? undefined : 'address')
        if (isRefused) lines.end(buckets)
        else await giveBack(buckets.filter(({ kind }) => kind !== 'address'))
        return isRefused
      },
      /** The password was right: the browser is known to the account from now on. */
      remember: (reply: FastifyReply) => browsers?.remember(request, reply, username)
    }
  }
}

function createBuckets({ config }: Gateway, apart: string) {
  const { address, accountAndAddress, account } = config.limits.lockout
  const bucket = (kind: Kind, lockout: LockoutConfig['account'], of: string): KindBucket[] => {
    if (lockout === 'off') return []
    const { failures: burst, every: windowMs } = lockout
    return [{ kind, key: `${apart}${kind} ${of}`, rate: { max: 1, windowMs, burst } }]
  }

  return (request: FastifyRequest, name: string, knownBrowser: string | undefined) => {
    if (knownBrowser !== undefined) {
      // A stolen cookie is no way round whatever is counted.
      const lockout = [accountAndAddress, account, address].find(each => each !== 'off') ?? 'off'
      return bucket('browser', lockout, `${name} ${knownBrowser}`)
    }
    const from = countedAddress(request)
    return [
      ...bucket('address', address, from),
      ...bucket('accountAndAddress', accountAndAddress, `${name} ${from}`),
      ...bucket('account', account, name)
    ]
  }
}

function refusalOf(buckets: readonly KindBucket[], taken: Taken | typeof timeIsOver): GatewayError {
  if (taken === timeIsOver) {
    const message = 'Too many sign-ins at once. Please try again in a moment.'
    return new GatewayError('limit.exceeded', { retryAfter: 1, message, limit: 'lockout.address' })
  }
  const waitMs = Math.max(...taken.waitMs)
  const { kind } = buckets[taken.waitMs.indexOf(waitMs)] as KindBucket
  const code = kind === 'address' ? 'limit.exceeded' : 'login.locked'
  return new GatewayError(code, { retryAfter: waitMs / 1000, limit: `lockout.${kind}` })
}

type KnownBrowsers = ReturnType<typeof createKnownBrowsers>

const lifetimeSeconds = 90 * 24 * 3600
/** People share browsers. The account that was not used for the longest time is dropped. */
const maxAccounts = 5

interface KnownBrowser {
  readonly id: string
  /** A digest of each account, since names may be long, with the second of its last sign-in. */
  readonly accounts: ReadonlyArray<readonly [account: string, seconds: number]>
}

/** The sealed cookie that recognizes a browser which signed in before. It gives no access. */
export function createKnownBrowsers({ cookie, secrets }: Gateway) {
  const { options } = cookie
  const seal = createSeal(secrets, 'known-browser')
  const name = options.secure ? `__Host-${knownBrowserCookie}` : knownBrowserCookie
  const nowSeconds = () => Math.floor(Date.now() / 1000)
  const digestOf = (username: string) => hash('sha256', username, 'base64url').slice(0, 22)

  function read({ cookies }: FastifyRequest): KnownBrowser | undefined {
    const { [name]: sealed = '' } = cookies
    const known = seal.open(name, sealed) as KnownBrowser | undefined
    const oldest = nowSeconds() - lifetimeSeconds
    return known && { ...known, accounts: known.accounts.filter(([, last]) => last > oldest) }
  }

  return {
    /** @param username as it was typed: an account with almost this name is another one */
    idOf(request: FastifyRequest, username: string): string | undefined {
      const { id, accounts = [] } = read(request) ?? {}
      const digest = digestOf(username)
      return accounts.some(([account]) => account === digest) ? id : undefined
    },
    remember(request: FastifyRequest, reply: FastifyReply, username: string): void {
      const { id = randomBytes(16).toString('base64url'), accounts = [] } = read(request) ?? {}
      const digest = digestOf(username)
      const others = accounts.filter(([account]) => account !== digest)
      const kept = [[digest, nowSeconds()], ...others].slice(0, maxAccounts)
      const sealed = seal.close(name, { id, accounts: kept })
      // For every path: a proxy in front may serve the gateway under another prefix.
      reply.setCookie(name, sealed, { ...options, maxAge: lifetimeSeconds })
    }
  }
}
