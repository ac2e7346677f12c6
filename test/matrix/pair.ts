/** The running gateway of a pair, and what its user expects. */
import { parse, stringify } from 'yaml'
import { testSecret } from '../support/ops.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import { textFolder } from '../support/config-files.ts'
import { type Backend, type BackendFamily, type BackendOptions, users } from './backend.ts'
import type { Driver } from './driver.ts'
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
  /** Lines of config that the pair needs. */
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
}

type CleanUp = (undo: () => unknown) => void

export async function startPair(
  cleanUp: CleanUp,
  console: Driver,
  family: BackendFamily,
  options: PairOptions = {}
): Promise<Pair> {
  const backend = await family.start(cleanUp, options.backend)
  const files = pairFiles(console, family)
  const folder = textFolder(cleanUp, {
    'gateway.yaml': files.gateway,
    'routes.yaml': withRoutes(files.routes, options.routes),
    'limits.yaml': options.limits === undefined ? limits : stringify(options.limits)
  })
  const environment = { BACKEND_URL: backend.url, OPS_SECRET: testSecret }
  const gateway = await testGateway(cleanUp, folder, environment)
  let passedMs = 0
  const expected = {
    ...expectedOf(family),
    endSession: () => gateway.ops('/ops/api/sessions/close', { json: { everyone: true } }),
    passTime: (ms: number) => {
      passedMs += ms
    }
  }
  const page = nodePage(gateway.url, () => Date.now() + passedMs)
  return { backend, gateway, lines: countLines(files), page, expected }
}

function withRoutes(text: string, own: Readonly<Record<string, object>> = {}): string {
  const config = parse(text) as { routes: Record<string, object> }
  const routes = { ...config.routes }
  for (const [name, keys] of Object.entries(own)) routes[name] = { ...routes[name], ...keys }
  return stringify({ ...config, routes })
}

function expectedOf(family: BackendFamily): Omit<Expected, 'endSession' | 'passTime'> {
  const { admin } = users
  const { message, field } = family.save
  return {
    username: family.loginName(admin),
    password: admin.password,
    name: admin.name,
    // In the gateway's words where no text of the back-end takes their place.
    wrongPassword: [family.wrongPassword, ...wrongPassword],
    // Where only a field has a text, the message names the field too.
    refusal: [message, `${field}: ${message}`],
    ...(field !== undefined && { field })
  }
}
