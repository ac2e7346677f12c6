/** The running gateway of a pair, and what its user expects. */
import { parse, stringify } from 'yaml'
import { testSecret } from '../support/ops.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import { textFolder } from '../support/config-files.ts'
import { type Backend, type BackendFamily, type BackendOptions, users } from './backend.ts'
import type { Driver } from './driver.ts'
import { type Elsewhere, exchange } from './elsewhere.ts'
import { countLines, pairFiles } from './pair-files.ts'
import { type NodePage, nodePage } from './node-page.ts'
import { wrongPassword } from './preset-drivers.ts'
import type { Expected } from './use-console.ts'

/** Guessing may go on, and what tests do in a second is not what users do in a minute. */
const limits = stringify({
  lockout: { accountAndAddress: 'off', address: 'off', account: 'off' },
  limits: { 'signed-in': { by: 'user', max: 100_000, window: '1m' } }
})

interface Pair {
  readonly backend: Backend
  readonly gateway: TestGateway
  /** Lines of config that the pair needs, without those of a sign-in elsewhere. */
  readonly lines: number
  readonly page: NodePage
  readonly expected: Expected
}

interface PairOptions {
  readonly backend?: BackendOptions
  /** Further routes of the operator, and further keys of those that stand. */
  readonly routes?: Readonly<Record<string, object>>
  /** Default: nothing is locked. */
  readonly limits?: object
  /** Who signs in. Default: the back-end. */
  readonly elsewhere?: Elsewhere | undefined
}

type CleanUp = (undo: () => unknown) => void

export async function startPair(
  cleanUp: CleanUp,
  console: Driver,
  family: BackendFamily,
  options: PairOptions = {}
): Promise<Pair> {
  const { elsewhere } = options
  const backend = await family.start(cleanUp, options.backend)
  const files = pairFiles(console, family)
  const sources = { login: { sources: { backend: null, ...elsewhere?.sources } } }
  const folder = textFolder(cleanUp, {
    'gateway.yaml': files.gateway + (elsewhere === undefined ? '' : stringify(sources)),
    'routes.yaml': withOwn(files.routes, family, options),
    'users.yaml': stringify({ users: elsewhere?.users ?? {} }),
    'limits.yaml': options.limits === undefined ? limits : stringify(options.limits)
  })
  const environment = {
    BACKEND_URL: backend.url,
    OPS_SECRET: testSecret,
    ...elsewhere?.environment
  }
  const gateway = await testGateway(cleanUp, folder, environment)
  let passedMs = 0
  const page = nodePage(gateway.url, () => Date.now() + passedMs)
  const visit = elsewhere?.visitProvider
  const expected = {
    ...expectedOf(family, elsewhere),
    ...(visit && { visitProvider: () => visit(page, gateway.url) }),
    endSession: () => gateway.ops('/ops/api/sessions/close', { json: { everyone: true } }),
    passTime: (ms: number) => {
      passedMs += ms
    }
  }
  return { backend, gateway, lines: countLines(files), page, expected }
}

/** With the operator's own routes, and with the call for the tokens of users from elsewhere. */
function withOwn(
  text: string,
  { credential: as }: BackendFamily,
  { routes: own = {}, elsewhere }: PairOptions
): string {
  const config = parse(text) as Record<'upstreams' | 'routes', Record<string, object>>
  const { routes, upstreams } = config
  for (const [name, keys] of Object.entries(own)) routes[name] = { ...routes[name], ...keys }
  if (elsewhere) Object.assign(upstreams['backend'] ?? {}, { credential: { as, exchange } })
  return stringify(config)
}

function expectedOf(
  family: BackendFamily,
  elsewhere: Elsewhere | undefined
): Omit<Expected, 'endSession' | 'passTime'> {
  const { admin } = users
  const { message, field } = family.save
  return {
    username: elsewhere?.username ?? family.loginName(admin),
    password: admin.password,
    name: admin.name,
    // In the gateway's words where no text of the back-end takes their place.
    wrongPassword: [family.wrongPassword, ...wrongPassword],
    // Where only a field has a text, the message names the field too.
    refusal: [message, `${field}: ${message}`],
    ...(field !== undefined && { field })
  }
}
