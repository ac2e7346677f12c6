/** Users of YAML files, argon2id hashes: they sign in, and the files in force say who they are. */
import { hash } from 'node:crypto'
import type { SourceConfig } from '../config/schema/gateway.ts'
import { keySource } from '../config/schema/login.ts'
import type { UsersConfig } from '../config/schema/users.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Identity, Session, SignedIn } from '../session/types.ts'
import { decoyHash, type Hash, parseHash, verifyPassword } from './argon2.ts'
import type { PasswordSource } from './credential-source.ts'

type Users = UsersConfig['users']
type User = Users[string]

export interface Sources {
  readonly gateway: { readonly login: { readonly sources: Readonly<Record<string, SourceConfig>> } }
  readonly users: Readonly<Record<string, UsersConfig>>
}

function passwordDigest({ password }: User): string {
  return hash('sha256', password, 'base64url').slice(0, 22)
}

export function identityOf(username: string, user: User): Identity {
  return {
    id: user.id ?? username,
    username,
    name: user.name ?? username,
    roles: user.roles,
    profile: user.profile
  }
}

/** By the name of the source; undefined for sources of another kind. */
function filesOf({ gateway, users }: Sources): ReadonlyMap<string, Users | undefined> {
  return new Map(
    Object.entries(gateway.login.sources).map(([name, source]) => [
      name,
      source.kind === 'users-file' ? (users[source.file]?.users ?? {}) : undefined
    ])
  )
}

function userOf(users: Users = {}, username: string): User | undefined {
  return Object.hasOwn(users, username) ? users[username] : undefined
}

export function createFileUsers() {
  let files: ReturnType<typeof filesOf> | undefined
  return {
    activate: (sources: Sources): void => {
      files = filesOf(sources)
    },
    /** As the file has the user now; undefined for one who is gone or has another password. */
    review: <S extends Pick<Session, 'source' | 'identity' | 'password'>>(session: S) => {
      const { source, identity, password } = session
      if (files === undefined || source === keySource) return session
      if (!files.has(source)) return undefined
      const users = files.get(source)
      if (users === undefined) return session
      const user = userOf(users, identity.username)
      if (user === undefined || user.disabled) return undefined
      const current = identityOf(identity.username, user)
      const isSame = current.id === identity.id && password === passwordDigest(user)
      return isSame ? { ...session, identity: current } : undefined
    }
  }
}

const workOf = ({ memory, passes }: Hash) => memory * passes

/** A file as a credential source: for the user names in it no further source is asked. */
export function createUsersFile(name: string, { users }: UsersConfig): PasswordSource {
  const hashes = new Map(
    Object.entries(users).map(([username, user]) => [username, parseHash(user.password)])
  )
  const [costliest] = [...hashes.values()].toSorted((a, b) => workOf(b) - workOf(a))
  const decoy = decoyHash(costliest)
  return {
    name,
    async verify({ username, password }) {
      const user = userOf(users, username)
      const matches = await verifyPassword(password, hashes.get(username) ?? decoy)
      if (!matches || user === undefined || user.disabled) {
        return { vouched: false, ...(user === undefined ? { isUnknown: true } : { isFinal: true }) }
      }
      const identity = identityOf(username, user)
      return { vouched: true, identity, password: passwordDigest(user) }
    }
  }
}

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
export async function reviewChanged(sessions: Sessions, changed: readonly ChangedUser[]) {
  return await Array.fromAsync(changed, async user => {
    const { closed } = await sessions.endRefused(user)
    return { ...user, closed }
  })
}

export async function reviewSignedIn(sessions: Sessions, sources: Sources) {
  const reviewed: ReviewedUser[] = []
  for await (const users of sessions.store.scan('')) {
    reviewed.push(...(await reviewChanged(sessions, changesOf(users, sources))))
  }
  return reviewed.filter(({ closed }) => closed > 0)
}
