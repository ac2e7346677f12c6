/** What the gateway would do with a request, decision by decision: told by the real app run without sockets, with the place in config of each. */
import { sourceName } from '../../config/schema/gateway.ts'
import type { LoadedConfig } from '../../config/schema/config.ts'
import type { Counts, CountsOf } from '../../admin/limits.ts'
import { unknownRoute } from '../../app/hooks/context.ts'
import { createTracedApp, type Traced } from '../traced-app.ts'
import type { Identity } from '../../session/record.ts'
import { type Decision, endpoints, type Explained, type Locate } from './decision.ts'
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
    /** Where the gateway answers. An upstream that is asked has its own. */
    readonly status?: number
    readonly code?: string
    readonly message?: string
    readonly refusedBy?: Decision['step']
    readonly route?: string
    readonly upstream?: string
    readonly url?: string
  }
  readonly decisions: readonly Decision[]
  /** Whether a running gateway told what is counted now, or why not. */
  readonly counts: 'running' | { readonly unknown: string }
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

/** @param countsOf asks a running gateway; rejects with the reason where none can be asked */
export async function explain(
  config: LoadedConfig,
  given: Explained,
  countsOf: (of: CountsOf) => Promise<Counts>
): Promise<Explanation> {
  const place: Locate = (file, path) => {
    const { message: _, severity: __, ...at } = config.fault(file, path, '')
    return at
  }
  const someone: Identity = given.who?.identity ?? {
    id: 'someone',
    username: 'someone',
    name: 'someone',
    roles: [],
    profile: {}
  }
  const { fault: _, ...plain } = config
  const traced = await createTracedApp(plain, vouching(someone))
  try {
    const request = await requestOf(config, given, traced)
    const first = await traced.run(request)
    const route = first.at?.route ?? unknownRoute
    const { who } = given
    // Public routes look for no session, and no route of the gateway has none.
    const isAnonymous =
      who === undefined ||
      (first.at?.access === 'public' && !endpoints.has(route)) ||
      route === unknownRoute
    const { id: user, roles } = who?.identity ?? someone
    const caller = isAnonymous ? {} : { source: who.source, user, roles }
    const counts = await countsOf({
      route,
      method: given.method,
      address: given.from,
      ...caller
    }).catch((error: Error) => error.message)
    const known = typeof counts === 'string' ? undefined : counts
    // What JSON leaves out is nothing.
    const verdictOf = (rule: Traced['rules'][number]) =>
      known?.counts.find(each => JSON.stringify(each.rule) === JSON.stringify(rule))
    const found =
      known === undefined
        ? first
        : await traced.run(request, { verdictOf, inFlight: known.inFlight })
    const refusedBy = refusingStep(found)
    const decisions = [
      requestDecision(found, refusedBy, given),
      ...routeDecisions(config, found, refusedBy, traced.paths, given, place),
      ...gateDecisions(config, found, refusedBy, given, place),
      limitDecision(config, found, refusedBy, known, verdictOf, place)
    ].toSorted((a, b) => order.indexOf(a.step) - order.indexOf(b.step))
    const isStopped = refusedBy !== undefined && refusedBy !== 'answer'
    const passing = isStopped ? await asOneWhoMay(config, given, found, someone) : found
    const further =
      passing === undefined
        ? []
        : forwardingDecisions({ config, found: passing, sent: request.headers, place, isStopped })
    return {
      request: { method: given.method, target: given.target, from: given.from, as: who?.told },
      verdict: verdictOn(found, refusedBy, config),
      decisions: [...decisions, ...further],
      counts: typeof counts === 'string' ? { unknown: counts } : 'running'
    }
  } finally {
    await traced.close()
  }
}

function vouching(identity: Identity) {
  return {
    name: 'explain',
    verify: async () => ({ vouched: true, identity }) as const
  }
}

function verdictOn(
  { answer, error, at, asked }: Traced,
  refusedBy: Decision['step'] | undefined,
  { routes }: LoadedConfig
): Explanation['verdict'] {
  const route = at?.route === undefined ? {} : { route: at.route }
  if (refusedBy !== undefined)
    return {
      passes: false,
      status: answer.status,
      ...codeIn(answer.body, error),
      refusedBy,
      ...route
    }
  const own = asked.find(({ isPart }) => !isPart)
  const upstream = own && routes.upstreams[own.upstream]
  if (own === undefined || upstream === undefined)
    return { passes: true, status: answer.status, ...route }
  return {
    passes: true,
    ...route,
    upstream: own.upstream,
    url: upstream.url.replace(/\/$/, '') + own.path
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

/** The same request from somebody whom nothing refuses, so that the rest can be told. Undefined where nobody could pass. */
async function asOneWhoMay(
  config: LoadedConfig,
  given: Explained,
  { at }: Traced,
  someone: Identity
): Promise<Traced | undefined> {
  if (at?.route === undefined || at.access === undefined) return undefined
  const { fault: _, ...plain } = config
  const { maintenance: __, ...routes } = config.routes
  const traced = await createTracedApp({ ...plain, routes }, vouching(someone))
  try {
    const identity = {
      ...someone,
      roles: [...someone.roles, ...(typeof at.access === 'object' ? at.access.roles : [])]
    }
    const {
      'sec-fetch-site': _site,
      'origin': _origin,
      'referer': _referer,
      'cookie': _cookie,
      ...headers
    } = given.headers
    const [source = ''] = config.gateway.login.sources.map(sourceName)
    const who = { source, ...given.who, identity, told: '' }
    const request = await requestOf(config, { ...given, headers, who }, traced)
    const found = await traced.run(request)
    return refusingStep(found) === undefined ? found : undefined
  } finally {
    await traced.close()
  }
}
