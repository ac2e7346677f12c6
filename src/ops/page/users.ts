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
import { act, card, type Column, field, filters, linkTo, pill, say, table } from './parts.ts'
import { requestsCard } from './requests.ts'
import texts from './texts.json' with { type: 'json' }

const { heads, limits, users: words } = texts

const userColumn: Column<ShownSession> = [
  heads.user,
  'wide',
  ({ user, userId, source }) =>
    html`${linkTo('users', { user: userId, source }, user)} <small>${source}</small>`
]

const sessionColumns: ReadonlyArray<Column<ShownSession>> = [
  [heads.signedIn, '', ({ startedAt }) => ago(startedAt)],
  [heads.lastUsed, 'extra', ({ lastUsedAt }) => ago(lastUsedAt)],
  [heads.from, 'extra', ({ address }) => html`<code>${address}</code>`],
  [heads.with, 'extra', ({ agent }) => browser(agent)],
  [heads.endsIn, 'number extra', ({ idleIn }) => duration(idleIn * 1000)],
  [heads.act, '', endSession]
]

const limitColumns: ReadonlyArray<Column<CallerLimit>> = [
  [heads.limit, 'wide', ({ limit, of }) => html`${limit} <small>${of}</small>`],
  [heads.used, 'number', row => pill(row.exceeded ? 'bad' : 'ok', `${row.used} / ${row.max}`)],
  [heads.allFreeIn, 'number', ({ resetMs }) => duration(resetMs)]
]

const lockoutColumns: ReadonlyArray<Column<LockoutJson>> = [
  [heads.account, 'wide', ({ account }) => account && searchFor(account)],
  [heads.address, '', ({ address }) => html`<code>${address}</code>`],
  [heads.what, 'extra', ({ kind }) => kind],
  [heads.until, '', ({ until }) => time(until)],
  [heads.act, '', lift]
]

const blockColumns: ReadonlyArray<Column<BlockJson>> = [
  [heads.name, 'wide', ({ name }) => searchFor(name)],
  [heads.at, 'extra', ({ source = words.anySource }) => source],
  [heads.until, '', ({ until }) => (until === undefined ? words.lifted : time(until))],
  [heads.act, '', unblock]
]

const keyColumns: ReadonlyArray<Column<KeyJson>> = [
  [heads.key, 'wide', ({ name, roles }) => html`${name} <small>${roles.join(', ')}</small>`],
  [heads.lastUsed, '', ({ lastUsedAt }) => ago(lastUsedAt)],
  [heads.expires, 'extra', ({ expiresAt }) => time(expiresAt)],
  [heads.createdBy, 'extra', ({ createdBy }) => createdBy],
  [heads.act, '', revoke]
]

function searchFor(name: string): Html {
  return linkTo('users', { search: name }, name)
}

function revoke({ name }: KeyJson): Html {
  return act('revoke', { name }, ['/keys/revoke', { name }])
}

function endSession({ id, user, userId, source }: ShownSession): Html {
  const body = { user: userId, by: 'id', source, id }
  return act('end', { user }, ['/sessions/close', body])
}

function lift({ kind, account, address }: LockoutJson): Html {
  return act('lift', { who: account ?? address, kind }, ['/lockouts/lift', { account, address }])
}

function unblock({ name, source }: BlockJson): Html {
  return act('unblock', { name }, ['/users/unblock', { name, source }])
}

const requestsOfUser = 20
const danger = { isDanger: true }

async function userView(desk: Desk, user: UserId): Promise<Page> {
  const { id, source } = user
  const [sessions, counts, found] = await Promise.all([
    sessionsOf(desk.sessions, user),
    countsOf(desk, [callerOfUser(userKey(user))]),
    desk.failures.find({ user: id, last: requestsOfUser })
  ])
  const named = sessions[0]?.user ?? found.requests.find(({ user: each }) => each)?.user ?? id
  const { lockouts } = await listLockouts(desk, { account: named })
  const isOf = { ...user, username: named }
  const blocks = (await listBlocks(desk)).filter(each => isBlockOf(each)(isOf))
  const who = { user: named, sessions: sessions.length }
  const one = { user: id, by: 'id', source }
  const endAll = act('endAll', who, ['/sessions/close', one], danger)
  const block = act('block', who, ['/users/block', { name: id, source }], danger)
  const reset = act('reset', who, ['/limits/caller/reset', { caller: id }])
  const main = html`
    ${card(
      { title: words.sessions, count: sessions.length, tools: sessions.length > 0 && endAll },
      table(sessions, sessionColumns, words.notSignedIn)
    )}
    <div class="columns">
      ${card(
        { title: limits.ofUser, tools: counts.length > 0 && reset },
        table(counts, limitColumns, limits.notCounted)
      )}
      ${lockoutsCard(lockouts)} ${blocksCard(blocks, block)}
    </div>
    ${requestsCard(found.requests, found.hasMore)}
    <p class="empty">
      ${linkTo('requests', { user: id, status: '' }, words.requests)}.
      ${say(words.source, { source, id: html`<code>${id}</code>` })}
    </p>
  `
  return { title: named, place: 'users', main }
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
  const endAll = act('endEveryone', { users }, ['/sessions/close', { everyone: true }], danger)
  const main = html`
    ${filters(field('search', words.search, search))}
    ${card(
      { title: words.signedIn, count: say(words.count, { users }), tools: endAll },
      table(sessions, [userColumn, ...sessionColumns], words.none)
    )}
    <p class="empty">${words.which}</p>
    ${card({ title: words.keys, count: keys.length }, table(keys, keyColumns, say(words.noKey)))}
    ${lockoutsCard(lockouts)} ${blocksCard(blocks)}
  `
  return { place: 'users', main }
}

function blocksCard(blocks: readonly BlockJson[], tools?: Html): Html {
  return card(
    { title: words.blocks, count: blocks.length, tools },
    table(blocks, blockColumns, words.noBlock)
  )
}

function lockoutsCard(lockouts: readonly LockoutJson[]): Html {
  return card(
    { title: words.lockouts, count: lockouts.length },
    table(lockouts, lockoutColumns, words.noLockout)
  )
}
