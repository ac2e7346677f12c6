/** The cookie that recognizes a browser which signed in before. It gives no access. */
import { createHmac, hash, randomBytes } from 'node:crypto'
import { Signer, type CookieSerializeOptions } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { knownBrowserCookie } from '../../config/schema/lockout.ts'
import type { Gateway } from '../gateway.ts'

export type KnownBrowsers = ReturnType<typeof createKnownBrowsers>

/**
 * An account in a cookie: a hash, which does not reveal the name, and the time of the sign-in, in
 * seconds.
 */
interface SignedInAccount {
  readonly digest: string
  readonly at: number
}

const lifetimeMs = 90 * 24 * 3_600_000

/** People share browsers. The account that was not used for the longest time is dropped. */
const maxAccounts = 5

/** The attributes of the session's cookie are used for this one too. */
export function createKnownBrowsers({
  cookie: { options },
  secrets
}: Pick<Gateway, 'cookie' | 'secrets'>) {
  // Another key than for session cookies, so that neither can be used as the other.
  const signer = new Signer(
    secrets.map(secret => createHmac('sha256', secret).update('known browser').digest('base64url'))
  )
  const name = options.secure ? `__Host-${knownBrowserCookie}` : knownBrowserCookie
  const digestOf = (id: string, username: string) =>
    hash('sha256', `${id} ${username}`, 'base64url').slice(0, 22)
  const seconds = () => Math.floor(Date.now() / 1000)

  function read(request: FastifyRequest): { id: string; accounts: SignedInAccount[] } | undefined {
    const signed = request.cookies[name]
    if (signed === undefined || signed.length > 1000) return undefined
    const { valid, value } = signer.unsign(signed)
    if (!valid || value === null) return undefined
    const [id = '', ...rest] = value.split('.')
    const accounts = rest.map(text => ({
      digest: text.slice(0, 22),
      at: Number.parseInt(text.slice(22), 36)
    }))
    const oldest = seconds() - lifetimeMs / 1000
    return { id, accounts: accounts.filter(({ at }) => at > oldest) }
  }

  return {
    /**
     * The browser's id, if it signed in under this user name before.
     * @param username as it was typed: an account with almost this name is another one
     */
    idOf(request: FastifyRequest, username: string): string | undefined {
      const browser = read(request)
      if (browser === undefined) return undefined
      const digest = digestOf(browser.id, username)
      return browser.accounts.some(account => account.digest === digest) ? browser.id : undefined
    },
    /** Adds the account to the browser's cookie. */
    remember(request: FastifyRequest, reply: FastifyReply, username: string): void {
      const { id, accounts } = read(request) ?? {
        id: randomBytes(16).toString('base64url'),
        accounts: []
      }
      const digest = digestOf(id, username)
      const kept = [
        { digest, at: seconds() },
        ...accounts.filter(account => account.digest !== digest)
      ].slice(0, maxAccounts)
      const value = [id, ...kept.map(account => account.digest + account.at.toString(36))].join('.')
      // For every path: a proxy in front may serve the gateway under another prefix.
      const attributes: CookieSerializeOptions = {
        path: '/',
        secure: options.secure,
        httpOnly: true,
        sameSite: options.sameSite,
        partitioned: options.partitioned,
        maxAge: Math.floor(lifetimeMs / 1000)
      }
      reply.setCookie(name, signer.sign(value), attributes)
    }
  }
}
