/** Operators' endpoints: keep users out, of any credential source, and let them in again. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import { type Block, type BlockedName, isBlockOf } from '../session/blocked-users.ts'
import type { Sessions } from '../session/sessions.ts'
import { accountKey } from '../session/types.ts'
import { addAct } from './acts.ts'
import { addOpsScope } from './api.ts'
import type { Closing } from './closing.ts'
import { maxSignedIn } from './find-users.ts'
import { blockBody, blockedName } from './request-schemas.ts'

interface Options {
  readonly sessions: Sessions
  readonly close: Closing
  /** The names of the credential sources in force. */
  readonly sources: () => readonly string[]
  readonly log: { readonly info: (fields: object, message: string) => void }
}

/** A block as JSON for people. */
export interface BlockJson {
  readonly name: string
  readonly source?: string | undefined
  /** Undefined: until it is lifted. */
  readonly until?: string | undefined
}

const hint =
  'Name a user: {"name": "ID or NAME"}, with {"source": "NAME"} of one credential source only, ' +
  'and {"forMs": MILLISECONDS}, from a second to ten years.'

export function addBlockedUsers(ops: FastifyInstance, options: Options) {
  const { sessions, log } = options
  const { store } = sessions

  /** Without a source all blocks of the name. */
  async function blocksOf({ source, name }: BlockedName): Promise<Block[]> {
    const key = accountKey(name)
    return (await store.blocked()).filter(
      each => each.name === key && (source === undefined || each.source === source)
    )
  }

  async function unblock(body: BlockedName) {
    const lifted = await Promise.all((await blocksOf(body)).map(each => store.unblock(each)))
    const unblocked = lifted.filter(Boolean).length
    const { source, name: user } = body
    const fields = { event: 'users.unblocked', by: 'operator', user, source, unblocked }
    log.info(fields, 'may sign in again')
    return { unblocked }
  }

  const list = async (): Promise<BlockJson[]> =>
    (await store.blocked()).map(({ leftMs, ...name }) => toJson(name, leftMs))

  addOpsScope(ops, scope => {
    const schema = { summary: 'Users who are blocked, and until when.' }
    scope.get('/users/blocked', { schema }, async () => ({ blocked: await list() }))
    addAct(scope, {
      path: '/users/block',
      kind: 'users.block',
      summary: 'Ends the sessions of a user, and refuses sign-ins, for a time or until unblocked.',
      body: blockBody,
      hint,
      run: async body => await block(options, body)
    })
    addAct(scope, {
      path: '/users/unblock',
      kind: 'users.unblock',
      summary: 'Lets a user sign in again.',
      body: blockedName,
      hint,
      run: unblock
    })
  })
  return { list }
}

async function block(
  { sessions: { store }, close, sources, log }: Options,
  body: Static<typeof blockBody>
): Promise<object> {
  const { name, source, forMs } = body
  if (accountKey(name) === '') throw malformed(hint)()
  const known = sources()
  if (source !== undefined && !known.includes(source)) {
    const message = `There is no credential source "${source}", but ${known.join(', ')}.`
    throw malformed(message)()
  }
  await store.block(body, forMs)
  // After it: no sign-in slips between.
  const users = (await store.signedIn(maxSignedIn)).users.filter(isBlockOf(body))
  let closed = 0
  for (const user of users) closed += await close(user)
  const blocked = { ...toJson({ name, source }, forMs), closed }
  const { until } = blocked
  const fields = { event: 'users.blocked', by: 'operator', user: name, source, until, closed }
  log.info(fields, 'blocked')
  return blocked
}

function toJson({ name, source }: BlockedName, leftMs: number | undefined): BlockJson {
  const until = leftMs === undefined ? undefined : new Date(Date.now() + leftMs).toISOString()
  return { name, source, until }
}
