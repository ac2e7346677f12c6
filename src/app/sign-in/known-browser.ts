/** The cookie that recognizes a browser which signed in before. It gives no access. */
import { createHmac, hash, randomBytes } from 'node:crypto'
import { Signer } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { knownBrowserCookie } from '../../config/schema/limits.ts'
import type { Gateway } from '../gateway.ts'

export type KnownBrowsers = ReturnType<typeof createKnownBrowsers>

const lifetimeSeconds = 90 * 24 * 3600

/** People share browsers. The account that was not used for the longest time is dropped. */
const maxAccounts = 5

/** A hash of the account, which does not reveal the name. */
const digestLength = 22

const digestOf = (id: string, username: string) =>
  hash('sha256', `${id} ${username}`, 'base64url').slice(0, digestLength)

/** Its value is `ID.ACCOUNT.ACCOUNT…`: each account is a digest, and the time of its sign-in. */
export function createKnownBrowsers({
  cookie: { options },
  secrets
}: Pick<Gateway, 'cookie' | 'secrets'>) {
  // Another key than for session cookies, so that neither can be used as the other.
  const signer = new Signer(
    secrets.map(secret => createHmac('sha256', secret).update('known browser').digest('base64url'))
  )
  const name = options.secure ? `__Host-${knownBrowserCookie}` : knownBrowserCookie
  const nowSeconds = () => Math.floor(Date.now() / 1000)

  function read(request: FastifyRequest): { id: string; accounts: string[] } | undefined {
    const signed = request.cookies[name]
    if (signed === undefined || signed.length > 1000) return undefined
    const { valid, value } = signer.unsign(signed)
    if (!valid || value === null) return undefined
    const [id = '', ...accounts] = value.split('.')
    const oldest = nowSeconds() - lifetimeSeconds
    const isFresh = (account: string) => Number.parseInt(account.slice(digestLength), 36) > oldest
    return { id, accounts: accounts.filter(isFresh) }
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
      return browser.accounts.some(account => account.startsWith(digest)) ? browser.id : undefined
    },
    /** Adds the account to the browser's cookie. */
    remember(request: FastifyRequest, reply: FastifyReply, username: string): void {
      const { id = randomBytes(16).toString('base64url'), accounts = [] } = read(request) ?? {}
      const digest = digestOf(id, username)
      const others = accounts.filter(account => !account.startsWith(digest))
      const kept = [digest + nowSeconds().toString(36), ...others].slice(0, maxAccounts)
      // For every path: a proxy in front may serve the gateway under another prefix.
      reply.setCookie(name, signer.sign([id, ...kept].join('.')), {
        ...options,
        maxAge: lifetimeSeconds
      })
    }
  }
}
