import { readFileSync } from 'node:fs'
import { METHODS } from 'node:http'
import { isIP } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { loadConfig } from '../config/read/load.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import { credentialOf } from '../config/schema/routes.ts'
import { createDryApp, type DryRequest, tokenOfSession } from '../dry-run/dry-app.ts'
import { readJson } from '../json/body.ts'
import type { Json } from '../json/values.ts'
import { identityOf } from '../login/file-users.ts'
import type { Call } from '../proxy/receiver.ts'
import type { Upstream } from '../proxy/upstream.ts'
import { CommandError, type Invocation, type Io, UsageError, headersOf } from './command.ts'
import { explanationOf, formatExplanation } from './explanation.ts'

interface Values {
  readonly as?: string
  readonly role?: readonly string[]
  readonly from?: string
  readonly header?: readonly string[]
  readonly data?: string
  readonly answer?: string
  readonly live?: boolean
}

export async function explain(invocation: Invocation<Values>) {
  const { values, io } = invocation
  const config = loadConfig(invocation.configs, io.env)
  const sent = headersOf(values.header ?? [])
  const request = requestOf(config, invocation, sent)
  const who = whoIs(config, values.as, values.role ?? [])
  const user = who?.identity
  const answer = values.answer === undefined ? undefined : await readAnswer(values.answer, io)
  // Headers of the command line in the place of those that the gateway sends.
  const send = async (upstream: Upstream, call: Call) => {
    const isForPart = call.recorded?.purpose !== 'request'
    const hasNone = isForPart && credentialOf(upstream.config.credential).as === 'none'
    return await upstream.send({ ...call, headers: { ...call.headers, ...(!hasNone && sent) } })
  }
  const app = await createDryApp(config, { identity: user, ...(values.live && { send }) })
  try {
    const headers = { ...(who && { cookie: await app.signIn(who) }), ...request.headers }
    const result = await app.ask({ ...request, headers, answer })
    const parts = result.calls.filter(({ part }) => part !== undefined && part !== '')
    if (answer !== undefined && parts.length > 0) {
      throw new CommandError(
        'The route adds parts to the response before it is shaped: request all of them by --live.'
      )
    }
    const { method, target, address: from } = request
    const as = user && `${user.username} (roles: ${user.roles.join(', ') || 'none'})`
    const isAnswered = answer !== undefined || values.live === true
    const answered = { ...result, isAnswered, user }
    const json = await explanationOf(config, { method, target, from, as }, answered)
    const painted = formatExplanation(config, json, io.stdout)
    return { json, painted, code: json.verdict.passes ? 0 : 3 }
  } finally {
    await app.close()
  }
}

/** A response in a file, by the gateway's own reader: it may begin with a byte order mark. */
async function readAnswer(file: string, { stdin }: Io): Promise<Json> {
  const isInput = file === '-'
  try {
    return readJson(isInput ? await buffer(stdin) : readFileSync(file), {}, Infinity)
  } catch (error) {
    const { cause = error } = error as Error
    throw new CommandError(`${isInput ? 'Standard input' : file}: ${(cause as Error).message}.`)
  }
}

/** As of a page of the console. @param sent the headers of the command line, which are stronger */
function requestOf(
  { gateway }: LoadedConfig,
  { rest: [word = '', target = ''], values }: Invocation<Values>,
  sent: ReturnType<typeof headersOf>
): DryRequest {
  const { from: address = '127.0.0.1', data: body } = values
  const method = word.toUpperCase()
  if (!METHODS.includes(method) || method === 'CONNECT') {
    throw new UsageError(`There is no method "${word}".`)
  }
  if (!/^[\x21-\xff]+$/.test(target)) {
    throw new UsageError('A path must not contain blanks: write %20.')
  }
  if (isIP(address) === 0) {
    throw new UsageError(`--from is an address such as 203.0.113.7, not "${address}".`)
  }
  const isOfPage = !['sec-fetch-site', 'origin', 'referer'].some(name => Object.hasOwn(sent, name))
  const headers = {
    'host': gateway.server.hosts[0] ?? 'localhost',
    'accept': 'application/json',
    'accept-encoding': 'gzip, deflate, br',
    'accept-language': 'en',
    'user-agent': 'Mozilla/5.0',
    'authorization': 'Bearer of-the-page',
    ...(isOfPage && { 'sec-fetch-site': 'same-origin' }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...sent
  }
  return { method, target, address, headers, ...(body !== undefined && { body }) }
}

function whoIs(
  { gateway: { login }, users }: LoadedConfig,
  as: string | undefined,
  roles: readonly string[]
) {
  if (as === undefined && roles.length === 0) return undefined
  const name = as ?? 'someone'
  const sources = Object.entries(login.sources)
  for (const [source, config] of sources) {
    const fileUsers = config.kind === 'users-file' ? users[config.file]?.users : undefined
    const user = fileUsers && Object.hasOwn(fileUsers, name) ? fileUsers[name] : undefined
    if (user === undefined) continue
    const identity = identityOf(name, user)
    return { source, identity: { ...identity, roles: [...new Set([...identity.roles, ...roles])] } }
  }
  const [source = '', backend] =
    sources.find(([, { kind }]) => kind !== 'users-file') ?? sources[0] ?? []
  const identity = { id: name, username: name, name, roles, profile: {} }
  if (backend?.kind === 'oidc') return { source, identity, credential: { token: tokenOfSession } }
  if (backend?.kind !== 'upstream-login') return { source, identity }
  const cookies = backend.cookies.map(cookie => `${cookie}=(of-the-session)`).join('; ')
  const credential = {
    ...(backend.token !== undefined && { token: tokenOfSession }),
    ...(cookies !== '' && { cookies })
  }
  return { source, identity, credential }
}
