/**
 * Lockout of sign-in: after too many failures an account, an address or a known browser has to
 * wait.
 */
import type { FastifyRequest } from 'fastify'
import type { LimitsConfig, LockoutConfig } from '../../config/schema/limits.ts'
import { GatewayError } from '../../errors.ts'
import type { LockoutRule, Lockouts } from '../../limits/lockout/lockout.ts'
import { createAdmissionQueue } from '../../limits/lockout/admission-queue.ts'

/** A sign-in, as lockouts count it. */
export interface SignIn {
  readonly account: string
  readonly address: string
  /** The browser's id, if it signed in to the account before. */
  readonly knownBrowser: string | undefined
  /** Aborted when its client leaves. */
  readonly leaving: AbortSignal
}

/** An attempt that was counted before its password is evaluated. */
export interface CountedAttempt {
  /** The password was wrong. */
  readonly refused: () => Promise<void>
  /** The password was right, or could not be evaluated: the attempt is no failure. */
  readonly refund: () => Promise<void>
  /** Not all sources evaluated it: a failure of the address, and none of the account. */
  readonly undecided: () => Promise<void>
}

export interface Lockout {
  /** Whether a known browser is counted by itself. */
  readonly countsBrowsers: boolean
  /**
   * Counts a sign-in as a failure of the account before its password is evaluated, so that
   * guesses at the same time do not slip past. Of the address only what is refused counts, since
   * in an office many may sign in at the same time: no more passwords of an address are evaluated
   * at once than it has failures left, and others wait.
   * @throws GatewayError `login.locked`; `limit.exceeded` where the address is locked, or was
   *   waited for too long; the reason of `leaving` where the client left meanwhile
   */
  readonly attempt: (request: FastifyRequest, signIn: SignIn) => Promise<CountedAttempt>
}

interface Reports {
  /** Called for each refusal. */
  readonly onRefused: (limit: string, inShadow: boolean) => void
  /** Called for each lock that holds. */
  readonly onLocked: (kind: Guard['kind']) => void
}

interface Options extends Reports {
  readonly config: Pick<LimitsConfig, 'lockout'>
  readonly lockouts: Lockouts
}

interface Guard {
  readonly kind: 'account' | 'address' | 'browser'
  readonly rule: LockoutRule
  readonly enforced: boolean
}

/** The evaluation of one password of an address. */
interface Evaluation {
  readonly settle: (failed: boolean) => Promise<void>
}

const unguarded: Evaluation = { settle: async () => {} }

export function createLockout({ config, lockouts, ...reports }: Options): Lockout {
  const guards = guardsOf(config.lockout)
  const locks = createLockReports(reports)
  const acquireEvaluation = createAddressGuard(lockouts, locks, reports)

  async function attempt(request: FastifyRequest, signIn: SignIn): Promise<CountedAttempt> {
    const { account, knownBrowser } = signIn
    const isKnown = knownBrowser !== undefined
    const guard = isKnown ? guards.browser : guards.account
    const key = isKnown ? `browser:${account}:${knownBrowser}` : `account:${account}`
    const evaluation =
      isKnown || guards.address === undefined
        ? unguarded
        : await acquireEvaluation(request, guards.address, signIn)
    if (guard === undefined) {
      return {
        refused: () => evaluation.settle(true),
        refund: () => evaluation.settle(false),
        undecided: () => evaluation.settle(true)
      }
    }
    try {
      const counted = await lockouts.attempt(key, guard.rule)
      locks.throwIfLocked(guard, counted.waitMs)
      // In shadow mode a locked attempt goes on, though it was not counted: then this does nothing.
      const refund = () => lockouts.refund(key, guard.rule, counted)
      return {
        refused: async () => {
          const subject = { user: account, knownBrowser: guard.kind === 'browser' }
          locks.logLock(request, guard, counted.lockMs, subject)
          await evaluation.settle(true)
        },
        refund: async () => {
          await evaluation.settle(false)
          await refund()
        },
        undecided: async () => {
          await evaluation.settle(true)
          await refund()
        }
      }
    } catch (error) {
      await evaluation.settle(false)
      throw error
    }
  }

  return { countsBrowsers: guards.browser !== undefined, attempt }
}

/** Counts an address by what is refused; a password waits until it may be evaluated. */
function createAddressGuard(
  lockouts: Lockouts,
  { throwIfLocked, logLock }: LockReports,
  { onRefused }: Pick<Reports, 'onRefused'>
) {
  const queue = createAdmissionQueue(lockouts)
  return async (
    request: FastifyRequest,
    guard: Guard,
    { address, leaving }: SignIn
  ): Promise<Evaluation> => {
    const key = `address:${address}`
    const { rule } = guard
    const log = (lockMs: number) => logLock(request, guard, lockMs, { address })
    if (!guard.enforced) {
      throwIfLocked(guard, await lockouts.look(key, rule))
      const count = async () => log((await lockouts.attempt(key, rule)).lockMs)
      return { settle: async failed => (failed ? await count() : undefined) }
    }
    const { place, waitMs } = await queue.admit(key, rule, leaving)
    throwIfLocked(guard, waitMs)
    if (place === undefined) {
      const limit = 'lockout.address'
      onRefused(limit, false)
      const message = 'Too many sign-ins from this address at once. Please try again in a moment.'
      throw new GatewayError('limit.exceeded', { retryAfter: 1, message, limit })
    }
    return { settle: async failed => log(await queue.settle(key, rule, place, failed)) }
  }
}

interface LockReports {
  /** @throws GatewayError where a guard that is enforced has to wait */
  readonly throwIfLocked: (guard: Guard, waitMs: number) => void
  readonly logLock: (request: FastifyRequest, guard: Guard, lockMs: number, subject: object) => void
}

function createLockReports({ onRefused, onLocked }: Reports): LockReports {
  return {
    throwIfLocked: ({ kind, enforced }, waitMs) => {
      if (waitMs === 0) return
      const limit = `lockout.${kind}`
      onRefused(limit, !enforced)
      if (!enforced) return
      const code = kind === 'address' ? 'limit.exceeded' : 'login.locked'
      throw new GatewayError(code, { retryAfter: waitMs / 1000, limit })
    },
    logLock: (request, { kind, enforced }, lockMs, subject) => {
      if (lockMs === 0) return
      if (enforced) onLocked(kind)
      const mode = enforced ? 'enforce' : 'shadow'
      const fields = { event: 'login.lock', mode, ...subject, seconds: lockMs / 1000 }
      request.log.info(fields, 'too many failures: locked')
    }
  }
}

function guardsOf({ account, address, knownBrowser }: LockoutConfig) {
  // It replaces both, so the stricter mode holds: a stolen cookie must not bypass either.
  const browser = {
    ...account,
    mode: stricter(account.mode, address.mode),
    after: knownBrowser.after
  }
  return {
    account: guardOf('account', account, true),
    address: guardOf('address', address, false),
    browser: guardOf('browser', browser, true)
  }
}

type Mode = LockoutConfig['account']['mode']

function stricter(mode: Mode, other: Mode): Mode {
  return (
    (['enforce', 'shadow', 'off'] as const).find(each => each === mode || each === other) ?? 'off'
  )
}

function guardOf(
  kind: Guard['kind'],
  { mode, after, within, delay, longest: maxDelay, forget }: LockoutConfig['account'],
  strict: boolean
): Guard | undefined {
  if (mode === 'off') return undefined
  return {
    kind,
    enforced: mode === 'enforce',
    rule: {
      after,
      withinMs: within,
      delayMs: delay,
      maxDelayMs: maxDelay,
      forgetMs: forget,
      strict
    }
  }
}
