/** Explains each decision on a request, with its place in config, from a dry run of the real app. */
import { sourceName } from '../../config/schema/gateway.ts'
import type { LoadedConfig } from '../../config/schema/config.ts'
import { firstUrlOf } from '../../config/schema/upstream-addresses.ts'
import { withoutMaintenance } from '../offline-app.ts'
import { createTracedApp, type Traced } from '../traced-app.ts'
import type { Identity } from '../../session/record.ts'
import {
  type Context,
  type Decision,
  type Explained,
  type Locate,
  type ShownMaintenance
} from './decision.ts'
import { gateDecisions, refusingStep, requestDecision, routeDecisions } from './gates.ts'
import { limitDecision } from './limits.ts'
import { forwardingDecisions } from './forwarding.ts'
import { requestOf } from './request.ts'
import { parseKeepingDigits } from '../../json/digits.ts'

export interface Explanation {
  readonly request: {
    readonly method: string
    readonly target: string
    readonly from: string
    readonly as: string | undefined
  }
  readonly verdict: {
    readonly passes: boolean
    /** The status of the gateway's own response; undefined if an upstream answers. */
    readonly status?: number
    readonly code?: string
    readonly message?: string
    readonly refusedBy?: Decision['step']
    readonly route?: string
    readonly upstream?: string
    readonly url?: string
  }
  readonly decisions: readonly Decision[]
  /** Whether a running gateway said what operators closed, or the reason why not. */
  readonly maintenance: 'running' | { readonly unknown: string }
}

/** Asks a running gateway; rejects with the reason if none answers. */
export interface RunningGateway {
  readonly maintenance: () => Promise<readonly ShownMaintenance[]>
}

const order: ReadonlyArray<Decision['step']> = [
  'request',
  'route',
  'alias',
  'session',
  'origin',
  'limits',
  'access',
  'maintenance'
]

/** The user of a request without a named one. */
const someone: Identity = {
  id: 'someone',
  username: 'someone',
  name: 'someone',
  roles: [],
  profile: {}
}

export async function explain(
  config: LoadedConfig,
  request: Explained,
  running: RunningGateway
): Promise<Explanation> {
  const locate: Locate = (file, path) => {
    const { message: _, severity: __, ...at } = config.fault(file, path, '')
    return at
  }
  const user = request.who?.identity ?? someone
  const { fault: _, ...plain } = config
  const app = await createTracedApp(plain, vouching(user))
  try {
    const sent = await requestOf(config, request, app)
    const [closed] = await Promise.allSettled([running.maintenance()])
    const maintenance = closed.status === 'fulfilled' ? closed.value : []
    const traced = await app.run(sent, { maintenance })
    const refusedBy = refusingStep(traced)
    const context: Context = { config, request, traced, refusedBy, locate, maintenance }
    const decisions = [
      requestDecision(context),
      ...routeDecisions(context, app.paths),
      ...gateDecisions(context),
      limitDecision(context)
    ].toSorted((a, b) => order.indexOf(a.step) - order.indexOf(b.step))
    return {
      request: {
        method: request.method,
        target: request.target,
        from: request.from,
        as: request.who?.description
      },
      verdict: verdictOn(context),
      decisions: [...decisions, ...(await decisionsBehind(context, sent.headers))],
      maintenance: knownBy(closed)
    }
  } finally {
    await app.close()
  }
}

function knownBy(asked: PromiseSettledResult<unknown>): Explanation['maintenance'] {
  return asked.status === 'fulfilled'
    ? 'running'
    : { unknown: asked.reason instanceof Error ? asked.reason.message : String(asked.reason) }
}

/** The decisions after the gates; for a refused request, those for a permitted caller. */
async function decisionsBehind(
  context: Context,
  sent: Readonly<Record<string, string>>
): Promise<Decision[]> {
  const { config, request, traced, refusedBy, locate } = context
  const isStopped = refusedBy !== undefined && refusedBy !== 'answer'
  const passing = isStopped ? await traceAsPermitted(config, request, traced) : traced
  if (passing === undefined) return []
  return forwardingDecisions({ config, traced: passing, sent, locate, isStopped })
}

function vouching(identity: Identity) {
  return {
    name: 'explain',
    verify: async () => ({ vouched: true, identity }) as const
  }
}

function verdictOn({
  traced: { answer, error, at, asked },
  refusedBy,
  config: { routes }
}: Context): Explanation['verdict'] {
  const route = at?.route === undefined ? {} : { route: at.route }
  if (refusedBy !== undefined) {
    return {
      passes: false,
      status: answer.status,
      ...codeIn(answer.body, error),
      refusedBy,
      ...route
    }
  }
  const main = asked.find(({ isPart }) => !isPart)
  const upstream = main && routes.upstreams[main.upstream]
  if (main === undefined || upstream === undefined) {
    return { passes: true, status: answer.status, ...route }
  }
  return {
    passes: true,
    ...route,
    upstream: main.upstream,
    url: firstUrlOf(upstream).replace(/\/$/, '') + main.path
  }
}

function codeIn(body: string, error: Traced['error']): { code?: string; message?: string } {
  if (error !== undefined) return { code: error.code, message: error.message }
  try {
    const { errorCode, errorMessage } = parseKeepingDigits(body) as Record<string, unknown>
    return {
      ...(typeof errorCode === 'string' && { code: errorCode }),
      ...(typeof errorMessage === 'string' && { message: errorMessage })
    }
  } catch {
    return {}
  }
}

/** The same request from a permitted caller. Undefined if nobody can pass. */
async function traceAsPermitted(
  config: LoadedConfig,
  request: Explained,
  { at }: Traced
): Promise<Traced | undefined> {
  if (at?.route === undefined || at.access === undefined) return undefined
  const { fault: _, ...plain } = config
  const user = request.who?.identity ?? someone
  const app = await createTracedApp(withoutMaintenance(plain), vouching(user))
  try {
    const roles = typeof at.access === 'object' ? at.access.roles : []
    const identity = { ...user, roles: [...user.roles, ...roles] }
    const {
      'sec-fetch-site': _site,
      'origin': _origin,
      'referer': _referer,
      'cookie': _cookie,
      ...headers
    } = request.headers
    const [source = ''] = config.gateway.login.sources.map(sourceName)
    const who = { source, ...request.who, identity, description: '' }
    const traced = await app.run(await requestOf(config, { ...request, headers, who }, app))
    return refusingStep(traced) === undefined ? traced : undefined
  } finally {
    await app.close()
  }
}
