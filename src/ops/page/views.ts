/** Each page by its address: what it reads, and how it looks. */
import type { FastifyRequest } from 'fastify'
import type { FoundRequests, RequestQuery } from '../../observability/failures.ts'
import type { GatewayState } from '../../services/gateway-state.ts'
import type { Present } from '../../services/present.ts'
import { type BlockedName, isBlockOf } from '../../session/blocked-users.ts'
import type { addBlockedUsers } from '../blocked-users.ts'
import type { addOpsLimits } from '../limits.ts'
import type { addOpsLockouts } from '../lockouts.ts'
import type { addMaintenanceRoutes } from '../maintenance.ts'
import type { PlanAnswer, ReplicasStatus } from '../state-schemas.ts'
import type { addOpsSessions } from '../users.ts'
import { configPage } from './config.ts'
import type { Page } from './frame.ts'
import { limitsPage } from './limits.ts'
import { maintenancePage } from './maintenance.ts'
import { overview } from './overview.ts'
import { requestPage, requestsPage } from './requests.ts'
import { userPage, usersPage } from './users.ts'

/** What the routes below `/ops/api` show too. */
export interface PageData {
  readonly state: () => GatewayState
  readonly present: Pick<Present, 'read' | 'past'>
  readonly replicas: () => Promise<ReplicasStatus>
  readonly requests: (query: RequestQuery) => Promise<FoundRequests>
  readonly sessions: ReturnType<typeof addOpsSessions>
  readonly limits: ReturnType<typeof addOpsLimits>
  readonly lockouts: ReturnType<typeof addOpsLockouts>
  readonly blocks: ReturnType<typeof addBlockedUsers>
  readonly plan: () => Promise<PlanAnswer>
  readonly maintenance: ReturnType<typeof addMaintenanceRoutes>
}

type View = (data: PageData, request: FastifyRequest) => Promise<Page>

const requestsOfUser = 20

export const views: Readonly<Record<string, View>> = {
  '/ops/': async ({ present, replicas }) => ({
    place: '',
    main: overview(present.read(), present.past, await replicas())
  }),
  '/ops/requests': requestsView,
  '/ops/requests/:id': async ({ requests }, { params }) => {
    const { id } = params as { readonly id: string }
    const found = await requests({ id })
    return { title: `Request ${id}`, place: 'requests', main: requestPage(found.requests) }
  },
  '/ops/users': usersView,
  '/ops/limits': async ({ limits }) => ({ place: 'limits', main: limitsPage(limits.list()) }),
  '/ops/config': async ({ state, plan }) => ({
    place: 'config',
    main: configPage(state().config, await plan())
  }),
  '/ops/maintenance': async ({ maintenance: { show, routes } }) => ({
    place: 'maintenance',
    main: maintenancePage(show(), routes())
  })
}

export function addressOf({ url }: FastifyRequest): URL {
  return new URL(`http://ops${url}`)
}

/** Of a name that comes twice, the last value. */
function queryOf(request: FastifyRequest): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(addressOf(request).searchParams)
}

async function requestsView({ requests }: PageData, request: FastifyRequest): Promise<Page> {
  const { status = 'failed', route, user, id } = queryOf(request)
  const query = { status, route, user, id }
  // A field that is empty asks for nothing.
  const asked = Object.entries(query).filter(([, value]) => value !== '')
  return { place: 'requests', main: requestsPage(await requests(Object.fromEntries(asked)), query) }
}

async function usersView(data: PageData, request: FastifyRequest): Promise<Page> {
  const { user: id = '', source = '', search = id } = queryOf(request)
  if (id !== '' && source !== '') return await userView(data, { id, source })
  const latest = await data.sessions.latest(search.trim())
  const { lockouts } = await data.lockouts.list({})
  return {
    place: 'users',
    main: usersPage({ ...latest, lockouts, blocks: await data.blocks.list() }, search)
  }
}

async function userView(data: PageData, user: { readonly id: string; readonly source: string }) {
  const [sessions, limits, found] = await Promise.all([
    data.sessions.ofUser(user),
    data.limits.ofUser(user),
    data.requests({ user: user.id, last: requestsOfUser })
  ])
  const name = sessions[0]?.user ?? found.requests.find(({ user: each }) => each)?.user ?? user.id
  const { lockouts } = await data.lockouts.list({ account: name })
  const isOf = (block: BlockedName) => isBlockOf(block)({ ...user, username: name })
  const blocks = (await data.blocks.list()).filter(isOf)
  const main = userPage({ ...user, name, sessions, limits, lockouts, blocks, found })
  return { title: name, place: 'users', main } as const
}
