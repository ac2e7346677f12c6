import { html, type Html } from '../../app/hooks/html.ts'
import { isBlockOf } from '../../session/blocked-users.ts'
import { listKeys } from '../../session/keys.ts'
import { type UserId, userKey } from '../../session/types.ts'
import { callerOfUser } from '../../limits/plan.ts'
import type { KeyJson } from '../keys.ts'
import { type CallerLimit, countsOf } from '../limits.ts'
import { listLockouts, type LockoutJson } from '../lockouts.ts'
import type { Desk } from '../routes.ts'
import {
  type BlockJson,
  latestSessions,
  listBlocks,
  sessionsOf,
  type ShownSession
} from '../users.ts'
import { ago, browser, duration, time } from './format.ts'
import type { Asked, Page } from './frame.ts'
import { act, card, type Column, field, filters, linkTo, pill, table } from './parts.ts'
import { requestsCard } from './requests.ts'

const userColumn: Column<ShownSession> = [
  'User',
  'wide',
  ({ user, userId, source }) =>
    html`${linkTo('users', { user: userId, source }, user)} <small>${source}</small>`
]

const sessionColumns: ReadonlyArray<Column<ShownSession>> = [
  ['Signed in', '', ({ startedAt }) => ago(startedAt)],
  ['Last used', 'extra', ({ lastUsedAt }) => ago(lastUsedAt)],
  ['From', 'extra', ({ address }) => html`<code>${address}</code>`],
  ['With', 'extra', ({ agent }) => browser(agent)],
  ['Ends in', 'number extra', ({ idleIn }) => duration(idleIn * 1000)],
  ['Act', '', endSession]
]

const limitColumns: ReadonlyArray<Column<CallerLimit>> = [
  ['Limit', 'wide', ({ limit, of }) => html`${limit} <small>${of}</small>`],
  [
    'Used',
    'number',
    ({ used, max, exceeded }) => pill(exceeded ? 'bad' : 'ok', `${used} of ${max}`)
  ],
  ['All free in', 'number', ({ resetMs }) => duration(resetMs)]
]

const lockoutColumns: ReadonlyArray<Column<LockoutJson>> = [
  ['Account', 'wide', ({ account }) => account && linkTo('users', { search: account }, account)],
  ['Address', '', ({ address }) => html`<code>${address}</code>`],
  ['What', 'extra', ({ kind }) => kind],
  ['Until', '', ({ until }) => time(until)],
  ['Act', '', lift]
]

const blockColumns: ReadonlyArray<Column<BlockJson>> = [
  ['Name or id', 'wide', ({ name }) => linkTo('users', { search: name }, name)],
  ['At', 'extra', ({ source = 'any source' }) => source],
  ['Until', '', ({ until }) => (until === undefined ? 'lifted' : time(until))],
  ['Act', '', unblock]
]

const keyColumns: ReadonlyArray<Column<KeyJson>> = [
  ['Key', 'wide', ({ name, roles }) => html`${name} <small>${roles.join(', ')}</small>`],
  ['Last used', '', ({ lastUsedAt }) => (lastUsedAt === undefined ? 'never' : ago(lastUsedAt))],
  ['Expires', 'extra', ({ expiresAt }) => time(expiresAt)],
  ['Created by', 'extra', ({ createdBy }) => createdBy],
  ['Act', '', revoke]
]

function revoke({ name }: KeyJson): Html {
  const text = `Scripts with the key ${name} are refused at once, at all replicas.`
  return act('Revoke', text, ['/keys/revoke', { name }])
}

function endSession({ id, user, userId, source }: ShownSession): Html {
  const text = `Signs ${user} out on this device, at once. Other sessions go on.`
  return act('End session', text, ['/sessions/close', { user: userId, by: 'id', source, id }])
}

function lift({ kind, account, address }: LockoutJson): Html {
  const text = `Forgets all failures of ${account ?? address} (${kind}).`
  return act('Lift', text, ['/lockouts/lift', { account, address }])
}

function unblock({ name, source }: BlockJson): Html {
  return act('Unblock', `${name} may sign in again.`, ['/users/unblock', { name, source }])
}

const requestsOfUser = 20
const danger = { isDanger: true }

async function userView(desk: Desk, user: UserId): Promise<Page> {
  const { id, source } = user
  const [sessions, limits, found] = await Promise.all([
    sessionsOf(desk.sessions, user),
    countsOf(desk, [callerOfUser(userKey(user))]),
    desk.failures.find({ user: id, last: requestsOfUser })
  ])
  const name = sessions[0]?.user ?? found.requests.find(({ user: each }) => each)?.user ?? id
  const { lockouts } = await listLockouts(desk, { account: name })
  const isOf = { ...user, username: name }
  const blocks = (await listBlocks(desk)).filter(each => isBlockOf(each)(isOf))
  const ofAll = `Signs ${name} out on all devices, at once. Sessions: ${sessions.length}.`
  const one = { user: id, by: 'id', source }
  const endAll = act('End all sessions', ofAll, ['/sessions/close', one], danger)
  const ofBlock = `Signs ${name} out on all devices, and refuses sign-ins until the block is lifted.`
  const block = act('Block', ofBlock, ['/users/block', { name: id, source }], danger)
  const ofReset = `All limits of ${name} count from zero.`
  const reset = act('Count anew', ofReset, ['/limits/caller/reset', { caller: id }])
  const main = html`
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
  return { title: name, place: 'users', main }
}

export async function usersView(
  desk: Desk,
  { user: id = '', source = '', search = id }: Asked
): Promise<Page> {
  if (id !== '' && source !== '') return await userView(desk, { id, source })
  const { sessions, users } = await latestSessions(desk.sessions, search.trim())
  const { lockouts } = await listLockouts(desk)
  const blocks = await listBlocks(desk)
  const keys = await listKeys(desk.sessions)
  const text = `Ends the sessions of all ${users} users, at all replicas. They have to sign in again.`
  const everyone = { everyone: true }
  const endAll = act('Sign everybody out', text, ['/sessions/close', everyone], danger)
  const main = html`
    ${filters(field('search', 'Name or id', search))}
    ${card(
      { title: 'Signed in', count: `${users} users`, tools: endAll },
      table(sessions, [userColumn, ...sessionColumns], 'Nobody who is signed in fits.')
    )}
    <p class="empty">The last 50 who signed in, or 50 whose name or id has what is searched for.</p>
    ${card(
      { title: 'Keys for scripts', count: keys.length },
      table(keys, keyColumns, 'No key: console-gateway keys create makes one.')
    )}
    ${lockoutsCard(lockouts)} ${blocksCard(blocks)}
  `
  return { place: 'users', main }
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
