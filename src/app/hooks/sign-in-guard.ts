/** Bounds how often a password may be tried, by account, address and browser. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { LimitsConfig } from '../../config/schema/limits.ts'
import type { Counters } from '../../limits/counting/counters.ts'
import { accountKey } from '../../limits/lockout/account.ts'
import type { Lockouts } from '../../limits/lockout/lockout.ts'
import { createCountedAddress } from './address.ts'
import type { KnownBrowsers } from './known-browser.ts'
import { type CountedAttempt, createLockout } from './lockout.ts'
import { createAttemptLimits } from './rate-limit-adapter.ts'

/**
 * An attempt that was counted before its password is evaluated; ends with `refused`, `refund` or
 * `undecided`.
 */
export interface AttemptHandle extends Omit<CountedAttempt, 'undecided'> {
  /**
   * Not all sources evaluated the password, since the captcha was wrong or a source failed: a
   * failure of the address, and up to `max` times an hour none of the account.
   * @returns whether it counted as refused
   */
  readonly undecided: (max: number) => Promise<boolean>
  /** The password was right: the browser is known to the account from now on. */
  readonly remember: (reply: FastifyReply) => void
}

export interface SignInGuard {
  /**
   * Counts a sign-in before its password is evaluated, so that guesses at the same time do not
   * slip past: by the lockout first, then by the limits of sign-in attempts. A browser that signed
   * in before is counted by itself alone.
   * @param username as it was typed
   * @param leaving aborted when the client leaves: then no password is evaluated for it
   * @throws GatewayError `limit.exceeded` for an address, `login.locked` for an account; the
   *   reason of `leaving`
   */
  readonly attempt: (
    request: FastifyRequest,
    username: string,
    leaving: AbortSignal
  ) => Promise<AttemptHandle>
}

interface Options {
  readonly config: LimitsConfig
  readonly lockouts: Lockouts
  readonly counters: Counters
  readonly knownBrowsers: KnownBrowsers
  /**
   * Called with the limit's name for each refusal, and for what a limit in shadow would have
   * refused.
   */
  readonly onRefused: (limit: string, inShadow: boolean) => void
  /** Called for each lock that holds. */
  readonly onLocked: (kind: 'account' | 'address' | 'browser') => void
}

const challengeMs = 3_600_000

/**
 * The key of a counter at the operators' page. With a blank, as that of wrong captchas: a limit may
 * be named `ops-…`.
 */
export const operatorsKey = (key: string): string => `ops ${key}`

export async function createSignInGuard(
  app: FastifyInstance,
  { config, lockouts, counters, knownBrowsers, onRefused, onLocked }: Options
): Promise<SignInGuard> {
  const countedAddress = createCountedAddress(config.ipv6Prefix)
  const lockout = createLockout({ config, lockouts, onRefused, onLocked })
  const limits = await createAttemptLimits(app, { config, counters, onRefused })

  return {
    attempt: async (request, username, leaving) => {
      const signIn = {
        account: accountKey(username),
        address: countedAddress(request),
        knownBrowser: lockout.countsBrowsers ? knownBrowsers.idOf(request, username) : undefined,
        leaving
      }
      const counted = await lockout.attempt(request, signIn)
      const refundLimits = await limits.count(request, signIn).catch(async (error: unknown) => {
        await counted.refund()
        throw error
      })
      const refund = async () => {
        await Promise.all([counted.refund(), refundLimits('all')])
      }
      if (leaving.aborted) await refund()
      leaving.throwIfAborted()
      return {
        refused: counted.refused,
        refund,
        undecided: async max => {
          // A blank, which no limit's name has: limits count under keys of their names, and the
          // record of use passes over other keys.
          const { current } = await counters.hit(`challenge ${signIn.account}`, challengeMs)
          if (current > max) {
            await counted.refused()
            return true
          }
          await Promise.all([counted.undecided(), refundLimits('account')])
          return false
        },
        remember: reply => {
          if (lockout.countsBrowsers) knownBrowsers.remember(request, reply, username)
        }
      }
    }
  }
}
