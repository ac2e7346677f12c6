/** Looks at GET calls of a back-end: lists and single records. */
import { type BackendClient, type BackendResponse, type Credential, maxRequests } from './client.ts'
import { type BackendEnvelope, envelopeOf, isSuccess } from './envelope.ts'
import { type ListPaths, listPathsOf } from './lists.ts'

/** A GET call that the console shall have. */
export interface WantedRoute {
  readonly name: string
  /** As the console calls it. */
  readonly publicPath: string
  /** At the back-end. */
  readonly path: string
}

export interface SeenRoute extends WantedRoute {
  readonly response: BackendResponse
  readonly envelope?: BackendEnvelope
  /** Undefined for a single record. */
  readonly list?: ListPaths
  /** Whether it answers without a credential too. */
  readonly isPublic: boolean
}

export interface SeenRoutes {
  readonly routes: readonly SeenRoute[]
  /** Wanted paths that could not be read, with the reason. */
  readonly failures: ReadonlyArray<{ readonly path: string; readonly reason: string }>
}

interface RouteContext {
  readonly client: BackendClient
  readonly credential: Credential
  readonly envelope?: BackendEnvelope
}

/** Requests of a route, and of the sign-out that follows. */
const reserved = 16

export async function lookAtRoutes(
  context: RouteContext,
  wanted: readonly WantedRoute[]
): Promise<SeenRoutes> {
  const { client, credential, envelope } = context
  const routes: SeenRoute[] = []
  const failures: Array<{ path: string; reason: string }> = []
  for (const route of wanted) {
    if (client.remaining() < reserved) {
      const reason = `not asked: init sends at most ${maxRequests} requests`
      failures.push({ path: route.path, reason })
      continue
    }
    const response = await client.get(route.path, credential)
    if (!isSuccess(response, envelope)) {
      failures.push({ path: route.path, reason: failureOf(response) })
      continue
    }
    const list = listPathsOf(response.body)
    const ofRoute = envelopeOf(response)
    const isPublic =
      credential.style !== 'none' && isSuccess(await client.get(route.path), envelope)
    routes.push({
      ...route,
      response,
      isPublic,
      ...(ofRoute !== undefined && { envelope: ofRoute }),
      ...(list !== undefined && { list })
    })
  }
  return { routes, failures }
}

function failureOf(response: BackendResponse): string {
  if (!response.isJson) {
    const type = /^[\w.+-]+\/[\w.+-]+/.exec(response.contentType)?.[0] ?? 'no type'
    return `status ${response.status}, ${type}, no JSON`
  }
  const code = envelopeOf(response)?.ok[0]
  return `status ${response.status}${code === undefined ? '' : `, code ${String(code)}`}`
}

/** A route's name from its path: `/api/v1/sys/orders/list` → `sys-orders`. */
export function routeName(path: string, taken: ReadonlySet<string>): string {
  const segments = path
    .split('?', 1)[0]
    ?.split('/')
    .map(segment =>
      segment
        .replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')
        .toLowerCase()
        .replaceAll(/[^a-z0-9]+/g, '-')
        .replaceAll(/^-|-$/g, '')
    )
    .filter(segment => !/^(|api|v\d+|rest|list|page|query|all)$/.test(segment))
  const base =
    (segments ?? [])
      .slice(-2)
      .join('-')
      .replace(/^[^a-z]+/, '') || 'route'
  let name = base
  for (let number = 2; taken.has(name); number++) name = `${base}-${number}`
  return name
}
