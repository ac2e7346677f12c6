/** `explain`: what the gateway does with a request, by the real app, with file and line. */
import { METHODS } from 'node:http'
import { isIP } from 'node:net'
import { loadConfig } from '../config/read/load.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import { credentialOf, type UpstreamConfig } from '../config/schema/routes.ts'
import { createDryApp, type DryApp, type DryRequest } from '../dry-run/dry-app.ts'
import { identityOf } from '../login/file-users.ts'
import { tlsFilesOf } from '../proxy/address.ts'
import { createUpstream, type Upstream, type UpstreamPool } from '../proxy/upstream.ts'
import type { Credential, Identity } from '../session/types.ts'
import { CommandError, type Invocation, UsageError } from './command.ts'
import { explanationOf, formatExplanation } from './explanation.ts'
import { anyHeadersOf, headersOf } from './header-option.ts'
import { jsonText } from './output.ts'
import { readInput } from './read-input.ts'

interface Values {
  readonly as?: string
  readonly role?: readonly string[]
  readonly from?: string
  readonly header?: readonly string[]
  readonly data?: string
  readonly answer?: string
  readonly live?: boolean
}

export async function explain(invocation: Invocation<Values>): Promise<number> {
  const { values, json, io } = invocation
  const config = loadConfig(invocation.config, io.env)
  const asked = askedIn(config, invocation)
  const answer = values.answer === undefined ? undefined : await readInput(values.answer, io)
  const live = values.live ? new LiveUpstreams(config, asked.headers) : undefined
  const app = await createDryApp(config, { open: live?.open, identity: asked.who?.identity })
  try {
    const request = await requestOf(config, asked, app)
    const result = await app.ask({ ...request, answer })
    const parts = result.calls.filter(({ part }) => part !== undefined && part !== '')
    if (answer !== undefined && parts.length > 0) {
      throw new CommandError(
        'The route adds parts to the response before it is shaped: request all of them by --live.'
      )
    }
    const { method, target, from, who } = asked
    const isAnswered = answer !== undefined || live !== undefined
    const shown = {
      ...{ method, target, from, as: who?.description, user: who?.identity },
      isAnswered,
      sent: request.headers
    }
    const explanation = await explanationOf(config, shown, result)
    io.stdout.write(json ? jsonText(explanation) : formatExplanation(explanation, io.stdout))
    return explanation.verdict.passes ? 0 : 3
  } finally {
    await app.close()
    await live?.close()
  }
}

/** The real upstreams of a config. */
class LiveUpstreams {
  readonly #config: LoadedConfig
  readonly #headers: Readonly<Record<string, string>>
  readonly #pools: UpstreamPool[] = []

  /** @param headers for upstreams, in the place of those that the gateway sends */
  constructor(config: LoadedConfig, headers: Readonly<Record<string, string>>) {
    this.#config = config
    this.#headers = headers
  }

  readonly open = (name: string, configured: UpstreamConfig): Upstream => {
    const { health: _, ...config } = configured
    // Without health checks: they would be requests that nobody has asked for.
    const pool = createUpstream(config, { name, tls: tlsFilesOf(config, this.#config.authorities) })
    this.#pools.push(pool)
    const takesCredential = credentialOf(config.credential).as !== 'none'
    const more = takesCredential ? this.#headers : {}
    return {
      ...pool,
      send: call => pool.send({ ...call, headers: { ...call.headers, ...this.#headers } }),
      fetchWhole: request =>
        pool.fetchWhole({ ...request, headers: { ...request.headers, ...more } })
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#pools.map(pool => pool.close()))
  }
}

interface Who {
  /** The credential source that vouches. */
  readonly source: string
  readonly identity: Identity
  readonly credential?: Credential
  /** The user, the source and the roles, for people. */
  readonly description: string
}

interface Asked {
  readonly method: string
  readonly target: string
  readonly from: string
  /** The client's own, in lower case; beside them, those of a page of the console are assumed. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly who?: Who
}

/** @throws UsageError */
function askedIn(
  config: LoadedConfig,
  { rest: [word = '', target = ''], values }: Invocation<Values>
): Asked {
  const { as, role = [], from = '127.0.0.1', header = [], data } = values
  const method = word.toUpperCase()
  if (!METHODS.includes(method) || method === 'CONNECT') {
    throw new UsageError(`There is no method "${word}".`)
  }
  if (!/^[\x21-\xff]+$/.test(target)) {
    throw new UsageError('A path must not contain blanks: write %20.')
  }
  if (isIP(from) === 0) {
    throw new UsageError(`--from is an address such as 203.0.113.7, not "${from}".`)
  }
  const who = whoIs(config, as, role)
  return {
    method,
    target,
    from,
    headers: values.live ? headersOf(header) : anyHeadersOf(header),
    ...(data !== undefined && { body: data }),
    ...(who && { who })
  }
}

/** As a browser with the console would send it. */
async function requestOf(
  { gateway, routes }: LoadedConfig,
  { method, target, from, headers, body, who }: Asked,
  { signIn }: Pick<DryApp, 'signIn'>
): Promise<DryRequest> {
  const passed = Object.values(routes.routes).flatMap(({ passCookies }) => passCookies)
  const cookies = [
    ...(who === undefined ? [] : [await signIn(who)]),
    ...new Set(['other', ...passed].map(name => `${name}=1`))
  ]
  const ofPage = !['sec-fetch-site', 'origin', 'referer'].some(name => Object.hasOwn(headers, name))
  const { username, password } = gateway.login.fields
  const signInBody = { [username]: who?.identity.username ?? 'someone', [password]: 'explained' }
  const hasBody = ['POST', 'PUT', 'PATCH'].includes(method)
  const sent = body ?? (hasBody ? JSON.stringify(signInBody) : undefined)
  return {
    method,
    target,
    address: from,
    headers: {
      'host': gateway.server.hosts[0] ?? 'localhost',
      'accept': 'application/json',
      'accept-encoding': 'gzip, deflate, br',
      'accept-language': 'en',
      'user-agent': 'Mozilla/5.0',
      'authorization': 'Bearer of-the-page',
      'cookie': cookies.join('; '),
      ...(ofPage && { 'sec-fetch-site': 'same-origin' }),
      ...(sent !== undefined && { 'content-type': 'application/json' }),
      ...headers
    },
    ...(sent !== undefined && { body: sent })
  }
}

function whoIs(
  {
    gateway: {
      login: { sources }
    },
    users
  }: LoadedConfig,
  as: string | undefined,
  roles: readonly string[]
): Who | undefined {
  if (as === undefined && roles.length === 0) return undefined
  const name = as ?? 'someone'
  for (const [sourceName, source] of Object.entries(sources)) {
    const fileUsers = source.kind === 'users-file' ? (users[source.file]?.users ?? {}) : {}
    const user = as !== undefined && Object.hasOwn(fileUsers, as) ? fileUsers[as] : undefined
    if (user === undefined || source.kind !== 'users-file') continue
    const identity = identityOf(name, user)
    const all = { ...identity, roles: [...new Set([...identity.roles, ...roles])] }
    const disabled = user.disabled ? '; disabled there: no new sign-in succeeds' : ''
    const description = `${name} of ${source.file} (${inRoles(all.roles)})${disabled}`
    return { source: sourceName, identity: all, description }
  }
  const names = Object.keys(sources)
  const ofBackEnd = names.find(each => sources[each]?.kind === 'upstream-login')
  const first = ofBackEnd ?? names[0] ?? ''
  const back = sources[first]
  const credential = back?.kind === 'upstream-login' && {
    ...(back.token !== undefined && { token: '(token-of-the-session)' }),
    ...(back.cookies.length > 0 && {
      cookies: back.cookies.map(cookie => `${cookie}=(of-the-session)`).join('; ')
    })
  }
  const unknown =
    as !== undefined && roles.length === 0
      ? '; in no users file: name the back-end’s roles with --role'
      : ''
  const identity = { id: name, username: name, name, roles, profile: {} }
  return {
    source: first,
    identity,
    ...(credential && { credential }),
    description: `${name} (${inRoles(roles)})${unknown}`
  }
}

function inRoles(roles: readonly string[]) {
  return roles.length === 0 ? 'no roles' : `role${roles.length > 1 ? 's' : ''} ${roles.join(', ')}`
}
