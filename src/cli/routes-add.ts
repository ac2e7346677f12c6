/** `routes add`: makes one call through a configured upstream, and writes a route and a shape for it. */
import { join, resolve } from 'node:path'
import { parse, stringify } from 'yaml'
import { loadConfig } from '../config/read/load.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import { describeFault } from '../config/schema/faults.ts'
import { credentialOf, type UpstreamConfig } from '../config/schema/routes.ts'
import { GatewayError } from '../errors/errors.ts'
import { createUpstreamLogin } from '../login/upstream-login.ts'
import { createUpstream } from '../proxy/upstream.ts'
import type { Session } from '../session/types.ts'
import { CommandError, type Invocation, UsageError } from './command.ts'
import { Answers } from './init/answers.ts'
import { createClient, isSuccess } from './init/client.ts'
import { shapeOf } from './init/detect.ts'
import { type DraftRoute, routeOf } from './init/files.ts'
import { routeFor } from './init/questions.ts'
import { faultsWith, readText, replaceFile } from './replace-file.ts'
import { parseTexts, setMember, textOf } from './yaml-text.ts'

export async function routes(invocation: Invocation): Promise<number> {
  const { config: folder, configs, rest, values, io } = invocation
  const [method, target = ''] = rest
  if (method !== 'GET') throw new UsageError('Only GET: another call could change something.')
  const config = loadConfig(configs, io.env)
  const route = routeFor(target, Object.keys(config.routes.routes))
  const upstream = upstreamOf(config, values['upstream'])
  const reply = await call(config, upstream, route.path, new Answers(invocation))
  if (!isSuccess(reply)) throw new CommandError(`GET ${route.path} gave no data: ${reply.summary}.`)
  const file = resolve(folder, 'routes.yaml')
  const seen = shapeOf(reply.body, sourceOf(config, upstream)?.message)
  const { added, text } = textWith(readText(file), config, { ...route, upstream, seen })
  const faults = faultsWith(configs, new Map([[file, text]]), io.env)
  if (faults.length > 0) throw new CommandError(faults.map(describeFault).join('\n'))
  io.stdout.write(`# ${seen.found}\n${stringify(added)}`)
  if (values['write'] === true) {
    replaceFile(file, text)
    io.stdout.write(`# Written to ${join(folder, 'routes.yaml')}.\n`)
  }
  return 0
}

interface Shapes {
  readonly shapes?: Readonly<Record<string, unknown>>
}

/** `routes.yaml` with the route, and what was added. */
function textWith(text: string, { gateway }: LoadedConfig, route: DraftRoute) {
  const { shapes: written = {} } = (parse(text, { merge: true }) ?? {}) as Shapes
  const shapes = { ...written }
  const added = { [route.name]: routeOf(route, shapes, gateway) }
  const newShapes = Object.entries(shapes).filter(([name]) => !(name in written))
  const document = parseTexts(text)
  setMember(document, ['routes'], route.name, added[route.name])
  for (const [name, value] of newShapes) setMember(document, ['shapes'], name, value)
  const files = { routes: added, shapes: Object.fromEntries(newShapes) }
  return { added: files, text: textOf(document, text) }
}

function upstreamOf({ routes: { upstreams } }: LoadedConfig, told: unknown): string {
  const names = Object.keys(upstreams)
  const name = typeof told === 'string' ? told : names[0]
  if (name !== undefined && names.includes(name) && (told || names.length === 1)) return name
  throw new UsageError(`Name one of the upstreams with --upstream: ${names.join(', ')}.`)
}

function sourceOf({ gateway }: LoadedConfig, upstream: string) {
  return Object.values(gateway.login.sources)
    .filter(source => source.kind === 'upstream-login')
    .find(source => source.upstream === upstream)
}

/** As the gateway would send it, with the credential of an account that is asked for. */
async function call(config: LoadedConfig, name: string, path: string, answers: Answers) {
  const { health: _, ...upstream } = config.routes.upstreams[name] as UpstreamConfig
  const pool = createUpstream(upstream, { name, pemFiles: config.authorities })
  const client = createClient(pool.fetchWhole, {})
  const { as: credentialStyle, scheme: credentialScheme } = credentialOf(upstream.credential)
  const source = sourceOf(config, name)
  try {
    if (credentialStyle === 'none' || source === undefined) return await client.get(path)
    const login = createUpstreamLogin({
      name,
      config: source,
      send: pool.fetchWhole,
      credentialStyle,
      credentialScheme
    })
    const account = { username: await answers.account(), password: await answers.password() }
    const attempt = { ...account, extra: {}, address: '127.0.0.1', requestId: 'routes-add' }
    const result = await login.verify(attempt)
    if (!result.vouched) throw new CommandError(`The sign-in was refused. ${result.message ?? ''}`)
    const { credential = {} } = result
    const reply = await client.get(path, { credential, as: upstream.credential })
    await login.signOut?.({ credential } as Session).catch(() => {})
    return reply
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { code, cause } = error
    throw new CommandError(`The sign-in failed: ${code}, ${(cause as Error | undefined)?.message}.`)
  } finally {
    await pool.close()
  }
}
