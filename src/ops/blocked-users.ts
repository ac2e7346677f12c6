/** Keeps users out, of any credential source, and lets them in again. */
import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import { type BlockedName, isBlockOf } from '../session/blocked-users.ts'
import { accountKey } from '../session/types.ts'
import { addAct, addRead, type Desk } from './routes.ts'
import { count, list, maxNameLength, name, object, optional, text, time } from './schemas.ts'
import { endSessions, findUsers } from './users.ts'

export type BlockJson = Static<typeof block>

const tenYearsMs = 3650 * 86_400_000
const block = object({ name: text(), source: optional(text()), until: optional(time) })
const blockedName = object({
  name: name('User name or id.'),
  source: optional(
    text('At this credential source; at any without it.', { maxLength: maxNameLength })
  )
})
const blockBody = object({
  ...blockedName.properties,
  forMs: optional(
    Type.Integer({
      minimum: 1000,
      maximum: tenYearsMs,
      description: 'Milliseconds; until unblocked without it.'
    })
  )
})

const hint =
  'Name a user: {"name": "ID or NAME"}, with {"source": "NAME"} of one credential source only, ' +
  'and {"forMs": MILLISECONDS}, from a second to ten years.'

export function addBlockRoutes(ops: FastifyInstance, desk: Desk): void {
  addRead(ops, {
    path: '/users/blocked',
    summary: 'Users who are blocked, and until when.',
    answer: object({ blocked: list(block) }),
    read: async () => ({ blocked: await listBlocks(desk) })
  })
  addAct(ops, {
    path: '/users/block',
    kind: 'users.block',
    summary: 'Ends the sessions of a user, and refuses sign-ins, for a time or until unblocked.',
    hint,
    body: blockBody,
    answer: object({ ...block.properties, closed: count }),
    run: async body => await blockUser(desk, body)
  })
  addAct(ops, {
    path: '/users/unblock',
    kind: 'users.unblock',
    summary: 'Lets a user sign in again.',
    hint,
    body: blockedName,
    answer: object({ unblocked: count }),
    run: async body => await unblockUser(desk, body)
  })
}

export async function listBlocks({ sessions }: Desk): Promise<BlockJson[]> {
  return (await sessions.store.blocked()).map(({ leftMs, ...of }) => toJson(of, leftMs))
}

async function blockUser(desk: Desk, { forMs, ...blocked }: Static<typeof blockBody>) {
  const { config, sessions } = desk
  const { name: user, source } = blocked
  if (accountKey(user) === '') throw malformed(hint)()
  const known = Object.keys(config().gateway.login.sources)
  if (source !== undefined && !known.includes(source)) {
    const message = `There is no credential source "${source}", but ${known.join(', ')}.`
    throw malformed(message)()
  }
  await sessions.store.block(blocked, forMs)
  // After it: no sign-in slips between. Names are compared without case and accents: all are read.
  const users = await findUsers(sessions.store, isBlockOf(blocked))
  let closed = 0
  for (const each of users) closed += await endSessions(desk, each)
  return { ...toJson(blocked, forMs), closed }
}

async function unblockUser({ sessions: { store } }: Desk, { name: user, source }: BlockedName) {
  const key = accountKey(user)
  const blocks = (await store.blocked()).filter(
    each => each.name === key && (source === undefined || each.source === source)
  )
  const lifted = await Promise.all(blocks.map(each => store.unblock(each)))
  return { unblocked: lifted.filter(Boolean).length }
}

function toJson({ name: user, source }: BlockedName, leftMs = Infinity): BlockJson {
  return {
    name: user,
    ...(source !== undefined && { source }),
    ...(leftMs !== Infinity && { until: new Date(Date.now() + leftMs).toISOString() })
  }
}
