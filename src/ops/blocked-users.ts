/** Keeps users out, of any credential source, and lets them in again. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import { type BlockedName, isBlockOf } from '../session/blocked-users.ts'
import { accountKey } from '../session/types.ts'
import type { Desk } from './desk.ts'
import { addAct, addRead } from './routes.ts'
import {
  blockAnswer,
  blockBody,
  blockedName,
  type BlockJson,
  blocksAnswer,
  unblockAnswer
} from './schemas.ts'
import { endSessions, findUsers } from './users.ts'

const hint =
  'Name a user: {"name": "ID or NAME"}, with {"source": "NAME"} of one credential source only, ' +
  'and {"forMs": MILLISECONDS}, from a second to ten years.'

export function addBlockedUsers(ops: FastifyInstance, desk: Desk) {
  const { store } = desk.sessions
  const list = async (): Promise<BlockJson[]> =>
    (await store.blocked()).map(({ leftMs, ...name }) => toJson(name, leftMs))

  addRead(ops, {
    path: '/users/blocked',
    summary: 'Users who are blocked, and until when.',
    answer: blocksAnswer,
    read: async () => ({ blocked: await list() })
  })
  addAct(ops, {
    path: '/users/block',
    kind: 'users.block',
    summary: 'Ends the sessions of a user, and refuses sign-ins, for a time or until unblocked.',
    hint,
    body: blockBody,
    answer: blockAnswer,
    run: async body => await block(desk, body)
  })
  addAct(ops, {
    path: '/users/unblock',
    kind: 'users.unblock',
    summary: 'Lets a user sign in again.',
    hint,
    body: blockedName,
    answer: unblockAnswer,
    run: async body => await unblock(desk, body)
  })
  return { list }
}

async function block(desk: Desk, { name, source, forMs }: Static<typeof blockBody>) {
  const { config, sessions, log } = desk
  if (accountKey(name) === '') throw malformed(hint)()
  const known = Object.keys(config().gateway.login.sources)
  if (source !== undefined && !known.includes(source)) {
    const message = `There is no credential source "${source}", but ${known.join(', ')}.`
    throw malformed(message)()
  }
  const blocked = { name, source }
  await sessions.store.block(blocked, forMs)
  // After it: no sign-in slips between. Names are compared without case and accents: all are read.
  const users = await findUsers(sessions.store, '', isBlockOf(blocked))
  let closed = 0
  for (const user of users) closed += await endSessions(desk, user)
  const answer = { ...toJson(blocked, forMs), closed }
  const { until } = answer
  const fields = { event: 'users.blocked', by: 'operator', user: name, source, until, closed }
  log.info(fields, 'blocked')
  return answer
}

/** Without a source all blocks of the name. */
async function unblock({ sessions: { store }, log }: Desk, { name, source }: BlockedName) {
  const key = accountKey(name)
  const blocks = (await store.blocked()).filter(
    each => each.name === key && (source === undefined || each.source === source)
  )
  const lifted = await Promise.all(blocks.map(each => store.unblock(each)))
  const unblocked = lifted.filter(Boolean).length
  const fields = { event: 'users.unblocked', by: 'operator', user: name, source, unblocked }
  log.info(fields, 'may sign in again')
  return { unblocked }
}

function toJson({ name, source }: BlockedName, leftMs: number | undefined): BlockJson {
  return {
    name,
    ...(source !== undefined && { source }),
    ...(leftMs !== undefined && { until: new Date(Date.now() + leftMs).toISOString() })
  }
}
