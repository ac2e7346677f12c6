/** The effects of changed users files on live sessions. */
import type { Sessions } from '../session/sessions.ts'
import type { SignedIn } from '../session/types.ts'
import { filesOf, type Sources, userOf } from './file-users.ts'

export interface ChangedUser extends SignedIn {
  readonly change: 'removed' | 'disabled' | 'password changed'
}

export type ReviewedUser = Awaited<ReturnType<typeof reviewChanged>>[number]

const minChanged = 5

export function changedUsers(before: Sources, after: Sources): ChangedUser[] {
  const users = [...filesOf(before)].flatMap(([source, ofSource = {}]) =>
    Object.entries(ofSource)
      .filter(([, { disabled }]) => !disabled)
      .map(([username, { id = username, password }]) => ({ source, id, username, password }))
  )
  return changesOf(users, after)
}

function changesOf(
  users: ReadonlyArray<SignedIn & { readonly password?: string }>,
  after: Sources
): ChangedUser[] {
  const files = filesOf(after)
  return users.flatMap(({ password, ...named }): ChangedUser[] => {
    const { source, id, username } = named
    const ofSource = files.get(source)
    // Of a back-end a file says nothing.
    if (ofSource === undefined && files.has(source)) return []
    const user = userOf(ofSource, username)
    if (user === undefined || (user.id ?? username) !== id) return [{ ...named, change: 'removed' }]
    if (user.disabled) return [{ ...named, change: 'disabled' }]
    return user.password === password ? [] : [{ ...named, change: 'password changed' }]
  })
}

export function massChange(before: Sources, after: Sources): string | undefined {
  const ending = changedUsers(before, after).filter(({ change }) => change !== 'disabled')
  for (const [source, { length }] of Map.groupBy(ending, each => each.source)) {
    const users = Object.keys(filesOf(before).get(source) ?? {}).length
    if (length < minChanged || length <= users / 2) continue
    return `${length} of ${users} users of source ${source} vanish or change their password`
  }
  return undefined
}

/** Ends their sessions, one user after the other. @throws StoreUnavailable */
export async function reviewChanged(
  sessions: Pick<Sessions, 'endOf'>,
  changed: readonly ChangedUser[]
) {
  return await Array.fromAsync(changed, async user => {
    const { closed } = await sessions.endOf(user, { by: 'users-file' }, ({ evaluation }) => {
      return 'ended' in evaluation && evaluation.ended === 'revoked'
    })
    return { ...user, closed }
  })
}

/** The same for users that changed while this process did not run. @throws StoreUnavailable */
export async function reviewSignedIn(
  sessions: Pick<Sessions, 'endOf' | 'store'>,
  sources: Sources
): Promise<ReviewedUser[]> {
  const reviewed: ReviewedUser[] = []
  for await (const users of sessions.store.scan()) {
    reviewed.push(...(await reviewChanged(sessions, changesOf(users, sources))))
  }
  return reviewed.filter(({ closed }) => closed > 0)
}
