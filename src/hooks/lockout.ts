/** Whom a lockout keeps from trying a password. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { LimitsConfig, LockoutConfig } from '../config/limits.ts'
import { GatewayError } from '../errors.ts'
import type { Attempt, LockoutRule, Lockouts } from '../limits/lockout.ts'
import type { KnownBrowser } from './known-browser.ts'

export interface Guarded {
  /** Whether this browser signed in to the account before. */
  readonly isKnown: boolean
  /** The attempt was refused. */
  readonly refused: () => Promise<void>
  /** It was not, or could not be decided. */
  readonly giveBack: () => Promise<void>
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
   * Counts a sign-in as a failure of the account before its password is looked at, so that guesses at the same time do
   * not slip past. Of the address it counts only what is refused: in an office many may sign in at the same time.
   * @throws GatewayError `login.locked`; `limit.exceeded` where the address is locked
   */
  readonly attempt: (request: FastifyRequest, who: Who) => Promise<Guarded>
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

export function createLockout ({ config: { lockout }, lockouts, known, onRefused, onLocked }: Options): Lockout {
  const guards = {
    account: guardOf('account', lockout.account, true),
    address: guardOf('address', lockout.address, false),
    // It stands in for both, and so for either: a stolen cookie must not open what they close.
    browser: guardOf('browser', { ...lockout.account, mode: stricter(lockout.account.mode, lockout.address.mode), after: lockout.knownBrowser.after }, true)
  }

  async function attempt (request: FastifyRequest, { username, account, address }: Who): Promise<Guarded> {
    const browser = guards.browser === undefined ? undefined : known.of(request, username)
    const own = browser === undefined ? guards.account : guards.browser
    const ofAddress = browser === undefined ? guards.address : undefined
    const key = browser === undefined ? `account:${account}` : `browser:${account}:${browser}`
    const addressKey = `address:${address}`

    const hold = ({ kind, enforced }: Guard, waitMs: number) => {
      if (waitMs === 0) return
      onRefused(`lockout.${kind}`, !enforced)
      if (enforced) throw new GatewayError(kind === 'address' ? 'limit.exceeded' : 'login.locked', { retryAfter: waitMs / 1000 })
    }
    const tell = ({ kind, enforced }: Guard, { lockMs }: Attempt) => {
      if (lockMs === 0) return
      if (enforced) onLocked(kind)
      request.log.info({ event: 'login.lock', mode: enforced ? 'enforce' : 'shadow', ...(kind === 'address' ? { address } : { user: account, knownBrowser: kind === 'browser' }), seconds: lockMs / 1000 }, 'too many failures: locked')
    }

    if (ofAddress !== undefined) hold(ofAddress, await lockouts.look(addressKey, ofAddress.rule))
    const made = own === undefined ? undefined : await lockouts.attempt(key, own.rule)
    if (own !== undefined && made !== undefined) hold(own, made.waitMs)
    return {
      isKnown: browser !== undefined,
      refused: async () => {
        if (own !== undefined && made !== undefined) tell(own, made)
        if (ofAddress !== undefined) tell(ofAddress, await lockouts.attempt(addressKey, ofAddress.rule))
      },
      giveBack: async () => { if (own !== undefined && made?.waitMs === 0) await lockouts.giveBack(key, own.rule, made) },
      remember: reply => { if (guards.browser !== undefined) known.remember(request, reply, username) }
    }
  }

  return { attempt }
}

type Mode = LockoutConfig['account']['mode']

const stricter = (one: Mode, other: Mode): Mode => (['enforce', 'shadow', 'off'] as const).find(mode => mode === one || mode === other) ?? 'off'

function guardOf (kind: Guard['kind'], { mode, after, within, delay, longest, forget }: LockoutConfig['account'], strict: boolean): Guard | undefined {
  if (mode === 'off') return undefined
  return { kind, enforced: mode === 'enforce', rule: { after, withinMs: within, delayMs: delay, longestMs: longest, forgetMs: forget, strict } }
}
