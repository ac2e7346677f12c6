/** Users: who is signed in, who is locked out, and everything about one of them. */
import type { FoundRequests } from '../../observability/failures.ts'
import type { UserId } from '../../session/types.ts'
import { ago, browser, duration, time } from './format.ts'
import { html, type Html } from './html.ts'
import { act, card, type Column, field, filters, linkTo, pill, table } from './parts.ts'
import type { BlockJson } from '../blocked-users.ts'
import type { CallerLimit } from '../limits.ts'
import type { LockoutJson } from '../lockouts.ts'
import type { SessionsAnswer, ShownSession } from '../users.ts'
import { requestsCard } from './requests.ts'

/** Who is kept out. */
interface KeptOut {
  readonly lockouts: readonly LockoutJson[]
  readonly blocks: readonly BlockJson[]
}

type Latest = SessionsAnswer & KeptOut

interface OneUser extends UserId, KeptOut {
  readonly name: string
  readonly sessions: readonly ShownSession[]
  readonly limits: readonly CallerLimit[]
  readonly found: FoundRequests
}

const userColumn: Column<ShownSession> = {
  head: 'User',
  kind: 'wide',
  cell: ({ user, userId, source }) =>
    html`${linkTo('users', { user: userId, source }, user)} <small>${source}</small>`
}

const sessionColumns: ReadonlyArray<Column<ShownSession>> = [
  { head: 'Signed in', cell: ({ startedAt }) => ago(startedAt) },
  { head: 'Last used', kind: 'extra', cell: ({ lastUsedAt }) => ago(lastUsedAt) },
  { head: 'From', kind: 'extra', cell: ({ address }) => html`<code>${address}</code>` },
  { head: 'With', kind: 'extra', cell: ({ agent }) => browser(agent) },
  { head: 'Ends in', kind: 'number extra', cell: ({ idleIn }) => duration(idleIn * 1000) },
  {
    head: 'Act',
    cell: ({ id, user, userId, source }) =>
      act({
        path: '/sessions/close',
        body: { user: userId, by: 'id', source, id },
        label: 'End session',
        text: `Signs ${user} out on this device, at once. Other sessions go on.`
      })
  }
]

const limitColumns: ReadonlyArray<Column<CallerLimit>> = [
  { head: 'Limit', kind: 'wide', cell: ({ limit, of }) => html`${limit} <small>${of}</small>` },
  {
    head: 'Used',
    kind: 'number',
    cell: ({ used, max, exceeded }) =>
      exceeded ? pill('bad', `${used} of ${max}`) : `${used} of ${max}`
  },
  { head: 'All free in', kind: 'number', cell: ({ resetMs }) => duration(resetMs) }
]

const lockoutColumns: ReadonlyArray<Column<LockoutJson>> = [
  {
    head: 'Account',
    kind: 'wide',
    cell: ({ account }) => account && linkTo('users', { search: account }, account)
  },
  { head: 'Address', cell: ({ address }) => html`<code>${address}</code>` },
  { head: 'What', kind: 'extra', cell: ({ kind }) => kind },
  { head: 'Until', cell: ({ until }) => time(until) },
  {
    head: 'Act',
    cell: ({ kind, account, address }) =>
      act({
        path: '/lockouts/lift',
        body: { account, address },
        label: 'Lift',
        text: `Forgets all failures of ${account ?? address} (${kind}).`
      })
  }
]

const blockColumns: ReadonlyArray<Column<BlockJson>> = [
  { head: 'Name or id', kind: 'wide', cell: ({ name }) => linkTo('users', { search: name }, name) },
  { head: 'At', kind: 'extra', cell: ({ source = 'any source' }) => source },
  { head: 'Until', cell: ({ until }) => (until === undefined ? 'lifted' : time(until)) },
  {
    head: 'Act',
    cell: ({ name, source }) =>
      act({
        path: '/users/unblock',
        body: { name, source },
        label: 'Unblock',
        text: `${name} may sign in again.`
      })
  }
]

export function usersPage(latest: Latest, search: string): Html {
  const { sessions, users = 0, lockouts, blocks } = latest
  const endAll = act({
    path: '/sessions/close',
    body: { everyone: true },
    label: 'Sign everybody out',
    text: `Ends the sessions of all ${users} users, at all replicas. They have to sign in again.`,
    isDanger: true
  })
  return html`
    ${filters(field('search', 'Name or id', search))}
    ${card(
      { title: 'Signed in', count: `${users} users`, tools: endAll },
      table(sessions, [userColumn, ...sessionColumns], 'Nobody who is signed in fits.')
    )}
    <p class="empty">The last 50 who signed in, or 50 whose name or id has what is searched for.</p>
    ${lockoutsCard(lockouts)} ${blocksCard(blocks)}
  `
}

export function userPage(user: OneUser): Html {
  const { id, source, name, sessions, limits, lockouts, blocks, found } = user
  const endAll = act({
    path: '/sessions/close',
    body: { user: id, by: 'id', source },
    label: 'End all sessions',
    text: `Signs ${name} out on all devices, at once. Sessions: ${sessions.length}.`,
    isDanger: true
  })
  const block = act({
    path: '/users/block',
    body: { name: id, source },
    label: 'Block',
    text: `Signs ${name} out on all devices, and refuses sign-ins until the block is lifted.`,
    isDanger: true
  })
  const reset = act({
    path: '/limits/caller/reset',
    body: { caller: id },
    label: 'Count anew',
    text: `All limits of ${name} count from zero.`
  })
  return html`
    ${card(
      { title: 'Sessions', count: sessions.length, tools: sessions.length > 0 && endAll },
      table(sessions, sessionColumns, 'Not signed in.')
    )}
    <div class="columns">
      ${card(
        { title: 'Limits', tools: limits.length > 0 && reset },
        table(limits, limitColumns, 'Nothing is counted at present.')
      )}
      ${lockoutsCard(lockouts)} ${blocksCard(blocks, block)}
    </div>
    ${requestsCard(found.requests, found.hasMore)}
    <p class="empty">
      ${linkTo('requests', { user: id, status: '' }, 'All that are kept of this user')}. Credential
      source: ${source}, id: <code>${id}</code>
    </p>
  `
}

function blocksCard(blocks: readonly BlockJson[], tools?: Html): Html {
  return card(
    { title: 'Blocked by operators', count: blocks.length, tools },
    table(blocks, blockColumns, 'No block.')
  )
}

function lockoutsCard(lockouts: readonly LockoutJson[]): Html {
  return card(
    { title: 'Locked out of signing in', count: lockouts.length },
    table(lockouts, lockoutColumns, 'No lockout.')
  )
}
