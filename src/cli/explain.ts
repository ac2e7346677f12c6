import { readFileSync } from 'node:fs'
import { METHODS } from 'node:http'
import { isIP } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { stringify } from 'yaml'
import { loadConfig } from '../config/read/load.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import { nearest } from '../config/schema/faults.ts'
import { ownMember, type Path } from '../config/schema/node.ts'
import { endpointNames } from '../config/schema/own-endpoints.ts'
import { credentialOf, tokenHeaderOf } from '../config/schema/routes.ts'
import { flatten, type ShapeStep } from '../config/schema/shapes.ts'
import { createDryApp, tokenOfSession, type UpstreamCall } from '../dry-run/dry-app.ts'
import { reasonOf, toGatewayError } from '../errors/errors.ts'
import { readJson, tryJson } from '../json/body.ts'
import type { Json } from '../json/values.ts'
import { identityOf } from '../login/file-users.ts'
import { requestSteps, type Step } from '../observability/request-story.ts'
import { printable, printableLines } from '../observability/unprintable.ts'
import type { Call } from '../proxy/receiver.ts'
import type { Upstream } from '../proxy/upstream.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { loadModules, type ShapeUse } from '../shaping/module.ts'
import { compileShape } from '../shaping/shape.ts'
import { CommandError, headersOf, type Invocation, type Io, UsageError } from './command.ts'
import { paint, stepLines } from './output.ts'

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
  const { configs, io } = invocation
  const config = loadConfig(configs, io.env)
  const json = await explanationOf(config, invocation)
  return { json, painted: formatted(config, json, io), code: json.verdict.passes ? 0 : 3 }
}

export type Explanation = Awaited<ReturnType<typeof explanationOf>>

async function explanationOf(config: LoadedConfig, invocation: Invocation<Values>) {
  const { values, io } = invocation
  const sent = headersOf(values.header ?? [])
  const asked = requestOf(config, invocation, sent)
  const who = whoIs(config, values)
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
    const headers = { ...(who && { cookie: await app.signIn(who) }), ...asked.headers }
    const { status, body, record, calls, shaped } = await app.ask({ ...asked, headers, answer })
    if (answer !== undefined && calls.some(({ part = '' }) => part !== '')) {
      throw new CommandError('The route adds parts before it shapes: ask for all by --live.')
    }
    const { method, target, address: from } = asked
    const as = user && `${user.username} (roles: ${user.roles.join(', ') || 'none'})`
    const main = calls.find(({ part }) => part === undefined)
    const isAnswered = answer !== undefined || values.live === true
    // Without a response, that of the upstream would decide.
    const isSettled = isAnswered || main === undefined
    const route = record?.route ?? ''
    const { routes, endpoints } = config.routes
    const { shape: name = '' } =
      route === 'profile' ? endpoints.profile : (ownMember(routes, route) ?? {})
    const use = { route, target, user }
    const isShaped = isAnswered && shaped.has(name)
    return {
      request: { method, target, from, as },
      verdict: {
        passes: !isSettled || status < 400,
        ...(isSettled && { status, code: record?.code }),
        ...(main !== undefined && { upstream: main.upstream, url: urlOf(config, main) })
      },
      record,
      calls: calls.map(call => ({
        upstream: call.upstream,
        part: call.part,
        method: call.method,
        url: urlOf(config, call),
        headers: { ...call.headers, ...hiddenHeaders(config, call) }
      })),
      shape: isShaped ? await traceShape(config, name, use, shaped.get(name)) : undefined,
      response: isAnswered ? { status, body } : undefined
    }
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
function requestOf(config: LoadedConfig, { rest, values }: Invocation<Values>, sent: object) {
  const [word = '', target = ''] = rest
  const { from: address = '127.0.0.1', data: body } = values
  const method = word.toUpperCase()
  if (!METHODS.includes(method) || method === 'CONNECT') {
    throw new UsageError(`There is no method "${word}".`)
  }
  if (!/^\/[\x21-\x7e]*$/.test(target)) {
    throw new UsageError('A path begins with /, and is escaped as in a URL: %20 for a blank.')
  }
  if (isIP(address) === 0) {
    throw new UsageError(`--from is an address such as 203.0.113.7, not "${address}".`)
  }
  const isOfPage = !['sec-fetch-site', 'origin', 'referer'].some(name => Object.hasOwn(sent, name))
  const headers = {
    'host': config.gateway.server.hosts[0] ?? 'localhost',
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

function whoIs({ gateway: { login }, users }: LoadedConfig, { as, role: roles = [] }: Values) {
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
  if (as !== undefined && sources.every(([, { kind }]) => kind === 'users-file')) {
    const names = Object.values(users).flatMap(file => Object.keys(file.users))
    throw new UsageError(`No users file has "${as}".${nearest(as, names)}`)
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

function urlOf({ routes }: LoadedConfig, { upstream, path }: UpstreamCall): string {
  const [url = ''] = routes.upstreams[upstream]?.url ?? []
  return url.replace(/\/$/, '') + path
}

/** Those of config may be secrets, and the gateway signs a real token here, too. */
function hiddenHeaders({ routes }: LoadedConfig, { upstream, headers }: UpstreamCall): object {
  const config = routes.upstreams[upstream]
  const names = Object.keys(config?.headers ?? {})
  const { as, jwt } = credentialOf(config?.credential ?? 'none')
  const token = tokenHeaderOf(as) ?? ''
  return {
    ...Object.fromEntries(names.map(name => [name, '(of the config)'])),
    ...(jwt !== undefined && token in headers && { [token]: '(signed by the gateway)' })
  }
}

function formatted(
  config: LoadedConfig,
  { request, verdict, record, calls, shape, response }: Explanation,
  { stdout: stream }: Io
): string {
  const { method, target, from, as } = request
  const at = (...path: Path) => {
    const { file, line } = config.fault(path, '')
    return `  ${paint('dim', `${file}:${line}`, stream)}`
  }
  const placeOf = ({ name, text }: Step) => {
    const [first = ''] = text.split(' ', 1)
    if (name === 'limits') return at('limits', first)
    if (name !== 'route' || record === undefined) return ''
    const { route } = record
    if (endpointNames.has(route)) return at('endpoints', route)
    return Object.hasOwn(config.routes.routes, route) ? at('routes', route) : ''
  }
  const steps = record === undefined ? [] : requestSteps(record)
  const lines = stepLines(steps).map((line, index) => line + placeOf(steps[index] as Step))
  const { passes, status, code = '', upstream, url } = verdict
  const answered = `answered with ${status} ${code}`.trimEnd()
  const end = status === undefined ? `passes to ${upstream}: ${url}` : answered
  const who = as === undefined ? '' : `, as ${printable(as)}`
  const parts = [
    [`${paint('bold', printable(`${method} ${target}`), stream)} from ${from}${who}`, ...lines],
    ...calls.map(call => callLines(call, at('upstreams', call.upstream))),
    ...(shape === undefined ? [] : [shapeLines(shape, at('shapes', shape.name))]),
    [
      paint(passes ? 'green' : 'red', `→ ${printable(end)}`, stream),
      ...(response?.body ? [jsonOf(response.body)] : [])
    ]
  ]
  return `${parts.map(part => part.join('\n')).join('\n\n')}\n`
}

function callLines(call: Explanation['calls'][number], place: string): string[] {
  const { upstream, part = '', method, url, headers } = call
  const purpose = part === '' ? '' : ` for part ${part}`
  const fields = Object.entries(headers)
    .map(([name, value]) => printable(`    ${name}: ${[value].flat().join(', ')}`))
    .toSorted()
  return [`asks ${upstream}${purpose}${place}`, printable(`  ${method} ${url}`), ...fields]
}

function shapeLines({ name, operations }: NonNullable<Explanation['shape']>, place: string) {
  const steps = operations.flatMap(({ operation, missing, failed }, index) => {
    const written = stringify(operation, { flowCollectionPadding: true, lineWidth: 110 }).trimEnd()
    const notes = failed === undefined ? [] : [failed]
    if (missing !== undefined) notes.push(`the response has no "${missing}": null from here on`)
    const [first = '', ...more] = [...written.split('\n'), ...notes].map(printable)
    return [`  ${index + 1}. ${first}`, ...more.map(line => `     ${line}`)]
  })
  return [`shape ${name}${place}`, ...steps]
}

function jsonOf(body: string): string {
  const value = tryJson(Buffer.from(body), {}, Infinity)
  return value === undefined ? printable(body) : printableLines(JSON.stringify(value, null, 2))
}

interface TracedStep {
  readonly operation: ShapeStep
  after?: unknown
  missing?: string
  failed?: string
}

/** Applies each operation by itself; a running gateway applies all in one pass. */
async function traceShape(config: LoadedConfig, name: string, use: ShapeUse, before: unknown) {
  const { shapes, paging } = config.routes
  const { success: wrap } = createEnvelope(config.gateway.envelope)
  const context = { wrap, shapes, paging, modules: await loadModules(config) }
  const operations: TracedStep[] = []
  let after = before
  for (const operation of flatten(shapes[name] ?? [], shapes)) {
    const step: TracedStep = { operation }
    operations.push(step)
    const onMissing = (path: string) => void (step.missing = path)
    const { refusal, apply } = compileShape([operation], { ...context, onMissing })
    const refused = refusal(after)
    try {
      if (refused) step.failed = `a failure: ${refused.status}, ${refused.message}`
      else step.after = after = await apply(after, use)
    } catch (error) {
      const { code, cause } = toGatewayError(error)
      step.failed = `${code}: ${reasonOf(cause)}`
    }
    if (step.failed !== undefined) break
  }
  return { name, before, operations }
}
