/** Bounds how often passwords may be guessed: by account, by address, and by both together. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { LockoutConfig } from '../../config/schema/limits.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Bucket, Taken } from '../../limits/lockouts.ts'
import { SignInLines, timeIsOver } from '../../limits/sign-in-line.ts'
import { accountKey } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import { countedAddress } from '../hooks/address.ts'
import type { KnownBrowsers } from './known-browser.ts'

export type SignInGuard = ReturnType<typeof createSignInGuard>
export type AttemptHandle = Awaited<ReturnType<SignInGuard>>

interface Options {
  /** Begins the keys of failures that are counted apart from those of the console. */
  readonly apart?: string
  readonly browsers?: KnownBrowsers | undefined
}

type Kind = 'account' | 'address' | 'accountAndAddress' | 'browser'

interface KindBucket extends Bucket {
  readonly kind: Kind
}

/** Within an hour, so many undecided attempts are no failures of an account. */
const undecidedRate = { max: 50, windowMs: 3_600_000, burst: 50 }
/** Wrong captchas of an account: where they are used up each more is a failure, so it is no lock. */
export const challenge = 'challenge'
/** Begins the keys of guesses at the operators' page: they lock nobody out of the console. */
export const operatorsApart = 'ops-'

export function createSignInGuard(gateway: Gateway, { apart = '', browsers }: Options = {}) {
  const { lockouts, counters } = gateway
  const lines = new SignInLines(lockouts)
  const bucketsOf = createBuckets(gateway, apart)
  const isWithinChallenges = async (account: string) => {
    const bucket = { key: `${apart}${challenge} ${account}`, rate: undecidedRate }
    return (await lockouts.take([bucket])).isTaken
  }

  /**
   * Counts a sign-in as a failure before its password is judged. A browser that signed in before
   * is counted by itself alone, so that nobody can lock the owner out.
   * @param username as it was typed
   * @param leaving aborted when the client leaves: then no password is judged for it
   * @returns an attempt that ends with `refused`, `refund` or `undecided`
   * @throws GatewayError `limit.exceeded` for an address, `login.locked` for an account; the
   *   reason of `leaving`
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
        request.log.info(lockFields(bucket, ms), 'too many failures: locked')
      }
    }
    const giveBack = async (those: readonly Bucket[]) => {
      await lockouts.giveBack(those, taken)
      lines.end(buckets, those)
    }
    if (leaving.aborted) await giveBack(buckets)
    leaving.throwIfAborted()
    return {
      /** The password was wrong. */
      refused: async () => {
        reportLocks()
        lines.end(buckets, [])
      },
      /** The password was right, or was not judged. */
      refund: async () => await giveBack(buckets),
      /**
       * Not all sources judged the password, since the captcha was wrong or a source failed: a
       * failure of the address, and up to 50 times an hour none of the account.
       * @param isFailure of the account as well, at once
       * @returns whether it counted as refused
       */
      undecided: async (isFailure: boolean) => {
        const isRefused = isFailure || !(await isWithinChallenges(account))
        reportLocks(isRefused ? undefined : 'address')
        if (isRefused) lines.end(buckets, [])
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

/** For the log: without the id of a known browser. */
function lockFields({ kind, key }: KindBucket, ms: number) {
  const [, first, second] = key.split(' ')
  return {
    event: 'login.lock',
    kind,
    ...(kind === 'address' ? { address: first } : { user: first }),
    ...(kind === 'accountAndAddress' && { address: second }),
    seconds: Math.ceil(ms / 1000)
  }
}
