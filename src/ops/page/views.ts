/** Each page by its address: what it reads, and how it looks. */
import type { FastifyRequest } from 'fastify'
import { type Content, html, type Html } from '../../app/hooks/html.ts'
import { createLanding } from '../../app/sign-in/flows.ts'
import { listKeys } from '../../login/keys.ts'
import type { GatewayState } from '../../services/gateway-state.ts'
import type { Present } from '../../services/present.ts'
import { isBlockOf } from '../../session/blocked-users.ts'
import type { UserId } from '../../session/types.ts'
import { listBlocks } from '../blocked-users.ts'
import { countsOfUser, type LimitRow, limitsOf } from '../limits.ts'
import { listLockouts } from '../lockouts.ts'
import { closableRoutes, maintenanceOf } from '../maintenance.ts'
import type { Desk } from '../routes.ts'
import type { PlanAnswer, ReplicasStatus } from '../state-schemas.ts'
import { latestSessions, sessionsOf } from '../users.ts'
import { configPage } from './config.ts'
import { duration, number, percent } from './format.ts'
import type { Page } from './frame.ts'
import { maintenancePage } from './maintenance.ts'
import { overview } from './overview.ts'
import { card, type Column, linkTo, pill, table } from './parts.ts'
import { requestPage, requestsPage } from './requests.ts'
import { userPage, usersPage } from './users.ts'

/** What the routes below `/ops/api` show too. */
export interface PageData {
  readonly desk: Desk
  readonly state: () => GatewayState
  readonly present: Pick<Present, 'read' | 'past'>
  readonly replicas: () => Promise<ReplicasStatus>
  readonly plan: () => Promise<PlanAnswer>
}

const callersShown = 5

const limitColumns: ReadonlyArray<Column<LimitRow>> = [
  ['Limit', '', ({ limit, by }) => html`${limit} <small>by ${[by].flat().join(', ')}</small>`],
  ['Mode', 'extra', ({ mode }) => pill(mode === 'enforce' ? 'ok' : 'plain', mode)],
  ['Number', 'number', ({ max, windowMs }) => `${number(max)} in ${duration(windowMs)}`],
  ['This hour', 'number', ({ hour }) => number(hour?.used)],
  ['Of it', 'number', ({ hour, max }) => percent((hour?.used ?? 0) / max)],
  ['24 hours', 'number extra', ({ day }) => number(day?.used)],
  ['Over it, or near', 'wide', overOrNear]
]

type View = (data: PageData, request: FastifyRequest) => Promise<Page>

const requestsOfUser = 20

export const views: Readonly<Record<string, View>> = {
  '/ops/': async ({ present, replicas }) => ({
    place: '',
    main: overview(present.read(), present.past, await replicas())
  }),
  '/ops/requests': requestsView,
  '/ops/requests/:id': async ({ desk }, { params }) => {
    const { id } = params as { readonly id: string }
    const found = await desk.failures.find({ id })
    return { title: `Request ${id}`, place: 'requests', main: requestPage(found.requests) }
  },
  '/ops/users': usersView,
  '/ops/limits': async ({ desk }) => ({ place: 'limits', main: limitsPage(limitsOf(desk)) }),
  '/ops/config': async ({ state, plan }) => ({
    place: 'config',
    main: configPage(state().config, await plan())
  }),
  '/ops/maintenance': async ({ desk }) => ({
    place: 'maintenance',
    main: maintenancePage(maintenanceOf(desk), closableRoutes(desk))
  })
}

/** Gives the address of a page, with its query, if it is one; else the first page. */
export const toPage = createLanding('/ops', path => /^\/ops\/(?:link|sign-in)\//.test(path))

export function addressOf({ url }: FastifyRequest): URL {
  return new URL(`http://ops${url}`)
}

/** Of a name that comes twice, the last value. */
function queryOf(request: FastifyRequest): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(addressOf(request).searchParams)
}

async function requestsView({ desk }: PageData, request: FastifyRequest): Promise<Page> {
  const { status = 'failed', route, user, id } = queryOf(request)
  const query = { status, route, user, id }
  // A field that is empty asks for nothing.
  const asked = Object.entries(query).filter(([, value]) => value !== '')
  const found = await desk.failures.find(Object.fromEntries(asked))
  return { place: 'requests', main: requestsPage(found, query) }
}

async function usersView({ desk }: PageData, request: FastifyRequest): Promise<Page> {
  const { user: id = '', source = '', search = id } = queryOf(request)
  if (id !== '' && source !== '') return await userView(desk, { id, source })
  const latest = await latestSessions(desk.sessions, search.trim())
  const { lockouts } = await listLockouts(desk)
  const blocks = await listBlocks(desk)
  const keys = await listKeys(desk.sessions)
  return { place: 'users', main: usersPage({ ...latest, lockouts, blocks, keys }, search) }
}

async function userView(desk: Desk, user: UserId): Promise<Page> {
  const [sessions, limits, found] = await Promise.all([
    sessionsOf(desk.sessions, user),
    countsOfUser(desk, user),
    desk.failures.find({ user: user.id, last: requestsOfUser })
  ])
  const name = sessions[0]?.user ?? found.requests.find(({ user: each }) => each)?.user ?? user.id
  const { lockouts } = await listLockouts(desk, { account: name })
  const isOf = { ...user, username: name }
  const blocks = (await listBlocks(desk)).filter(block => isBlockOf(block)(isOf))
  const main = userPage({ ...user, name, sessions, limits, lockouts, blocks, found })
  return { title: name, place: 'users', main }
}

function overOrNear({ over, nearest }: LimitRow): Content {
  const callers = new Set([...over, ...nearest.map(({ caller }) => caller)])
  return [...callers].slice(0, callersShown).map(caller => {
    const mark = over.includes(caller) && [' ', pill('bad', 'over')]
    return [linkTo('users', { search: caller }, caller), mark, ' ']
  })
}

function limitsPage(limits: readonly LimitRow[]): Html {
  return html`
    ${card(
      { title: 'Highest use by one caller', count: limits.length },
      table(limits, limitColumns, 'The config has no limits.')
    )}
    <p class="empty">
      As this process counted it since the beginning of the hour. A number a little above the
      highest use of some usual days refuses nobody.
    </p>
  `
}
