import { stringify } from 'yaml'
import { loadConfig } from '../config/read/load.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { GatewayError } from '../errors/errors.ts'
import { createUpstreamLogin } from '../login/upstream-login.ts'
import { createUpstream } from '../proxy/upstream.ts'
import type { Session } from '../session/types.ts'
import { CommandError, type Invocation, UsageError } from './command.ts'
import { Answers } from './prompt.ts'
import { createClient, isSuccess, type Reply } from './init/client.ts'
import { codeOf, shapeOf } from './init/detect.ts'
import { filled, routeOf } from './init/files.ts'
import { routeFor } from './init/questions.ts'

export async function routes(invocation: Invocation) {
  const { configs, rest, values, io } = invocation
  const [method, target = ''] = rest
  if (method !== 'GET') throw new UsageError('Only GET: another call could change something.')
  const config = loadConfig(configs, io.env)
  const route = routeFor(target, Object.keys(config.routes.routes))
  const upstream = upstreamOf(config, values['upstream'])
  const reply = await call(config, upstream, route.path, new Answers(invocation))
  const source = sourceOf(config, upstream)
  if (!isSuccess(reply) || hasOtherCode(reply, source)) {
    throw new CommandError(`GET ${route.path} gave no data: ${reply.summary}.`)
  }
  const seen = shapeOf(reply, source?.message)
  const shapes = {}
  const added = { [route.name]: routeOf({ ...route, upstream, seen }, shapes, config.gateway) }
  return { painted: `# ${seen.found}\n${stringify({ routes: added, shapes: filled(shapes) })}` }
}

/** Whether it has the member by which a sign-in is a success, with another value. */
function hasOtherCode({ body }: Reply, source: ReturnType<typeof sourceOf>): boolean {
  const success = source?.outcomes.find(({ is }) => is === 'success')
  const code = codeOf(body)
  return success?.path === code?.path && success?.in?.includes(code?.value ?? '') === false
}

function upstreamOf({ routes: { upstreams } }: LoadedConfig, told: unknown): string {
  const names = Object.keys(upstreams)
  const name = names.length === 1 && told === undefined ? names[0] : told
  if (typeof name === 'string' && names.includes(name)) return name
  throw new UsageError(`Name one of the upstreams with --upstream: ${names.join(', ')}.`)
}

function sourceOf({ gateway }: LoadedConfig, upstream: string) {
  return Object.values(gateway.login.sources)
    .filter(source => source.kind === 'upstream-login')
    .find(source => source.upstream === upstream)
}

async function call(config: LoadedConfig, name: string, path: string, answers: Answers) {
  const { health: _, ...upstream } = config.routes.upstreams[name] as UpstreamConfig
  const pool = createUpstream(upstream, name)
  const client = createClient(() => createUpstream(upstream, name))
  const source = sourceOf(config, name)
  try {
    if (upstream.credential === 'none' || source === undefined) return await client.get(path)
    const login = createUpstreamLogin({ name, config: source, backEnd: pool })
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
