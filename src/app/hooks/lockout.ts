/** Whom a lockout keeps from trying a password. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { LimitsConfig, LockoutConfig } from '../../config/schema/limits.ts'
import { GatewayError } from '../../errors.ts'
import type { LockoutRule, Lockouts } from '../../limits/lockout/lockout.ts'
import { createAdmissionQueue } from '../../limits/lockout/admission-queue.ts'
import type { KnownBrowser } from './known-browser.ts'

export interface AttemptHandle {
  /** Whether this browser signed in to the account before. */
  readonly isKnown: boolean
  /** The attempt was refused. */
  readonly refused: () => Promise<void>
  /** It was not, or could not be decided. */
  readonly refund: () => Promise<void>
  /** The browser is known from now on. */
  readonly remember: (reply: FastifyReply) => void
}

export interface Who {
  /** As it was typed. */
  readonly username: string
  /** As they are counted. */
  readonly account: string
  readonly address: string
}

export interface Lockout {
  /**
   * Counts a sign-in as a failure of the account before its password is evaluated, so that
   * guesses at the same time do not slip past. Of the address only what is refused counts, since
   * in an office many may sign in at the same time: no more passwords of an address are evaluated
   * at once than it has failures left, and others wait.
   * @throws GatewayError `login.locked`; `limit.exceeded` where the address is locked, or was
   *   waited for too long
   */
  readonly attempt: (request: FastifyRequest, who: Who) => Promise<AttemptHandle>
}

interface Options {
  readonly config: Pick<LimitsConfig, 'lockout'>
  readonly lockouts: Lockouts
  readonly known: KnownBrowser
  /** Told of each refusal. */
  readonly onRefused: (limit: string, inShadow: boolean) => void
  /** Told of each lock that holds. */
  readonly onLocked: (kind: Guard['kind']) => void
}

interface Guard {
  readonly kind: 'account' | 'address' | 'browser'
  readonly rule: LockoutRule
  readonly enforced: boolean
}

/** What became of a password of an address. */
interface Entered {
  readonly settle: (failed: boolean) => Promise<void>
}

const anyone: Entered = { settle: async () => {} }

export function createLockout({
  config: { lockout },
  lockouts,
  known,
  onRefused,
  onLocked
}: Options): Lockout {
  const queue = createAdmissionQueue(lockouts)
  const guards = {
    account: guardOf('account', lockout.account, true),
    address: guardOf('address', lockout.address, false),
    // It stands in for both, and so for either: a stolen cookie must not open what they close.
    browser: guardOf(
      'browser',
      {
        ...lockout.account,
        mode: stricter(lockout.account.mode, lockout.address.mode),
        after: lockout.knownBrowser.after
      },
      true
    )
  }

  function throwIfLocked({ kind, enforced }: Guard, waitMs: number): void {
    if (waitMs === 0) return
    onRefused(`lockout.${kind}`, !enforced)
    if (!enforced) return
    const code = kind === 'address' ? 'limit.exceeded' : 'login.locked'
    throw new GatewayError(code, { retryAfter: waitMs / 1000 })
  }

  function logLock(request: FastifyRequest, guard: Guard, lockMs: number, whom: object): void {
    if (lockMs === 0) return
    if (guard.enforced) onLocked(guard.kind)
    const mode = guard.enforced ? 'enforce' : 'shadow'
    const fields = { event: 'login.lock', mode, ...whom, seconds: lockMs / 1000 }
    request.log.info(fields, 'too many failures: locked')
  }

  /** Waits until a password of the address may be evaluated. */
  async function enter(request: FastifyRequest, guard: Guard, address: string): Promise<Entered> {
    const key = `address:${address}`
    const { rule } = guard
    const tellLock = (lockMs: number) => logLock(request, guard, lockMs, { address })
    if (!guard.enforced) {
      throwIfLocked(guard, await lockouts.look(key, rule))
      const count = async () => tellLock((await lockouts.attempt(key, rule)).lockMs)
      return { settle: async failed => (failed ? await count() : undefined) }
    }
    const { place, waitMs } = await queue.admit(key, rule)
    throwIfLocked(guard, waitMs)
    if (place === undefined) {
      onRefused('lockout.address', false)
      const message = 'Too many sign-ins from this address at once. Please try again in a moment.'
      throw new GatewayError('limit.exceeded', { retryAfter: 1, message })
    }
    return { settle: async failed => tellLock(await queue.settle(key, rule, place, failed)) }
  }

  async function attempt(
    request: FastifyRequest,
    { username, account, address }: Who
  ): Promise<AttemptHandle> {
    const browser = guards.browser === undefined ? undefined : known.of(request, username)
    const own = browser === undefined ? guards.account : guards.browser
    const ofAddress = browser === undefined ? guards.address : undefined
    const key = browser === undefined ? `account:${account}` : `browser:${account}:${browser}`
    const entered = ofAddress === undefined ? anyone : await enter(request, ofAddress, address)
    try {
      const counted = own === undefined ? undefined : await lockouts.attempt(key, own.rule)
      if (own !== undefined && counted !== undefined) throwIfLocked(own, counted.waitMs)
      return {
        isKnown: browser !== undefined,
        refused: async () => {
          if (own !== undefined && counted !== undefined) {
            const whom = { user: account, knownBrowser: own.kind === 'browser' }
            logLock(request, own, counted.lockMs, whom)
          }
          await entered.settle(true)
        },
        refund: async () => {
          await entered.settle(false)
          if (own === undefined || counted?.waitMs !== 0) return
          await lockouts.refund(key, own.rule, counted)
        },
        remember: reply => {
          if (guards.browser !== undefined) known.remember(request, reply, username)
        }
      }
    } catch (error) {
      await entered.settle(false)
      throw error
    }
  }

  return { attempt }
}

type Mode = LockoutConfig['account']['mode']

function stricter(one: Mode, other: Mode): Mode {
  return (
    (['enforce', 'shadow', 'off'] as const).find(mode => mode === one || mode === other) ?? 'off'
  )
}

function guardOf(
  kind: Guard['kind'],
  { mode, after, within, delay, longest, forget }: LockoutConfig['account'],
  strict: boolean
): Guard | undefined {
  if (mode === 'off') return undefined
  return {
    kind,
    enforced: mode === 'enforce',
    rule: { after, withinMs: within, delayMs: delay, maxDelayMs: longest, forgetMs: forget, strict }
  }
}
