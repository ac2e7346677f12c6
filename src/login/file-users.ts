/** The users files in force: they decide at each look-up of a session who its user is. */
import { hash } from 'node:crypto'
import { type SourceConfig, sourceName } from '../config/schema/gateway.ts'
import type { UsersConfig } from '../config/schema/users.ts'
import type { Identity, Session, SignedIn } from '../session/types.ts'

type User = UsersConfig['users'][string]

/** The parts of a config that define its file users. */
export interface Sources {
  readonly gateway: { readonly login: { readonly sources: readonly SourceConfig[] } }
  readonly users: Readonly<Record<string, UsersConfig>>
}

/** A digest of a user's password entry, kept in the session to notice a change. */
export function passwordDigest({ password }: User): string {
  return hash('sha256', password, 'base64url').slice(0, 22)
}

/** The identity of a user of the file. */
export function identityOf(username: string, user: User): Identity {
  return {
    id: user.id ?? username,
    username,
    name: user.name ?? username,
    roles: user.roles,
    profile: user.profile
  }
}

type Users = Readonly<Record<string, User>>

/** By the name of the source; undefined for sources of another kind. */
type Files = ReadonlyMap<string, Users | undefined>

function filesOf({ gateway, users }: Sources): Files {
  return new Map(
    gateway.login.sources.map(source => [
      sourceName(source),
      source.kind === 'users-file' ? (users[source.file]?.users ?? {}) : undefined
    ])
  )
}

const userOf = (users: Users | undefined, username: string): User | undefined =>
  users !== undefined && Object.hasOwn(users, username) ? users[username] : undefined

export type FileUsers = ReturnType<typeof createFileUsers>

export function createFileUsers() {
  let files: Files | undefined
  return {
    /** Puts a config's users in force. */
    activate: (sources: Sources): void => {
      files = filesOf(sources)
    },
    /**
     * A session as the file has its user now; undefined where the user was removed, disabled, or
     * has another password. A source that is gone has nothing left that confirms its users.
     */
    review: (session: Session): Session | undefined => {
      const { source, identity, password } = session
      if (files === undefined) return session
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

export type UserChange = 'removed' | 'disabled' | 'password changed'

export interface ChangedUser extends SignedIn {
  readonly change: UserChange
}

/** The file users of `before` whose sessions a change of config ends. */
export function changedUsers(before: Sources, after: Sources): ChangedUser[] {
  const next = filesOf(after)
  return fileUsersOf(before).flatMap(({ user, ...named }) => {
    const change = changeOf(named, user, userOf(next.get(named.source), named.username))
    return change === undefined || user.disabled ? [] : [{ ...named, change }]
  })
}

function changeOf(
  { id, username }: SignedIn,
  { password }: User,
  after: User | undefined
): UserChange | undefined {
  if (after === undefined || (after.id ?? username) !== id) return 'removed'
  if (after.disabled) return 'disabled'
  return after.password === password ? undefined : 'password changed'
}

/**
 * The users among those who are signed in whose sessions may be refused, with the change that would
 * be the reason.
 */
export function maybeChanged(sources: Sources, signedIn: readonly SignedIn[]): ChangedUser[] {
  const files = filesOf(sources)
  return signedIn.flatMap((named): ChangedUser[] => {
    const users = files.get(named.source)
    if (users === undefined && files.has(named.source)) return []
    const user = userOf(users, named.username)
    if (user === undefined) return [{ ...named, change: 'removed' }]
    return [{ ...named, change: user.disabled ? 'disabled' : 'password changed' }]
  })
}

/** All users of the files. */
export function fileUsersOf(sources: Sources): Array<SignedIn & { readonly user: User }> {
  return [...filesOf(sources)].flatMap(([source, users = {}]) =>
    Object.entries(users).map(([username, user]) => {
      return { source, id: user.id ?? username, username, user }
    })
  )
}
