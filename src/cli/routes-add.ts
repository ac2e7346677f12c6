import { stringify } from 'yaml'
import { loadConfig } from '../config/read/load.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import type { UpstreamLoginConfig } from '../config/schema/upstream-login.ts'
import { GatewayError, reasonOf } from '../errors/errors.ts'
import { createUpstreamLogin } from '../login/upstream-login.ts'
import { createUpstream, type Upstream } from '../proxy/upstream.ts'
import type { Session } from '../session/types.ts'
import { CommandError, type Invocation, UsageError } from './command.ts'
import { Answers, readPassword } from './prompt.ts'
import { createClient, isSuccess } from './init/client.ts'
import { shapeOf } from './init/detect.ts'
import { filled, routeOf } from './init/files.ts'
import { routeFor, userQuestion } from './init/questions.ts'

export async function routes(invocation: Invocation) {
  const { configs, rest, values, io } = invocation
  const [method, target = ''] = rest
  if (method !== 'GET') throw new UsageError('Only GET: another call could change something.')
  const config = loadConfig(configs, io.env)
  const route = routeFor(target, Object.keys(config.routes.routes))
  const upstream = upstreamOf(config, values['upstream'])
  const source = Object.values(config.gateway.login.sources)
    .filter(each => each.kind === 'upstream-login')
    .find(each => each.upstream === upstream)
  const { health: _, ...settings } = config.routes.upstreams[upstream] as UpstreamConfig
  const pool = createUpstream(settings, upstream)
  const client = createClient(() => createUpstream(settings, upstream))
  try {
    const isOpen = settings.credential === 'none' || source === undefined
    const session = isOpen ? undefined : await signIn(source, pool, new Answers(invocation))
    const reply = await client.get(route.path, session && { ...session, as: settings.credential })
    await session?.signOut()
    const known = source?.outcomes.find(({ is }) => is === 'success')
    if (!isSuccess(reply, known)) {
      throw new CommandError(`GET ${route.path} gave no data: ${reply.summary}.`)
    }
    const seen = shapeOf(reply, source?.message)
    const shapes = {}
    const added = { [route.name]: routeOf({ ...route, upstream, seen }, shapes, config.gateway) }
    return { painted: `# ${seen.found}\n${stringify({ routes: added, shapes: filled(shapes) })}` }
  } finally {
    await pool.close()
  }
}

function upstreamOf({ routes: { upstreams } }: LoadedConfig, told: unknown): string {
  const names = Object.keys(upstreams)
  const name = names.length === 1 && told === undefined ? names[0] : told
  if (typeof name === 'string' && names.includes(name)) return name
  throw new UsageError(`Name one of the upstreams with --upstream: ${names.join(', ')}.`)
}

async function signIn(config: UpstreamLoginConfig, backEnd: Upstream, answers: Answers) {
  const login = createUpstreamLogin({ name: config.upstream, config, backEnd })
  const username = await answers.ask('user', userQuestion)
  const account = { username, password: await readPassword('Its password: ', answers.io) }
  const attempt = { ...account, extra: {}, address: '127.0.0.1', requestId: 'routes-add' }
  const result = await login.verify(attempt).catch((error: unknown) => {
    if (!(error instanceof GatewayError)) throw error
    throw new CommandError(`The sign-in failed: ${error.code}, ${reasonOf(error.cause)}.`)
  })
  if (!result.vouched) throw new CommandError(`The sign-in was refused. ${result.message ?? ''}`)
  const { credential = {} } = result
  const signOut = async () => await login.signOut?.({ credential } as Session).catch(() => {})
  return { credential, signOut }
}
