/** The users of users files that are in force: sessions are held against them. */
import { hash } from 'node:crypto'
import { type SourceConfig, sourceName } from '../config/gateway.ts'
import type { UsersConfig } from '../config/users.ts'
import { type IdentityKey, identityKey } from '../session/identity-key.ts'
import type { FileState, Identity, Session } from '../session/record.ts'
import type { Review, Reviewer } from '../session/review.ts'
import type { SessionStore } from '../session/store.ts'

type User = UsersConfig['users'][string]

/** The credential sources of a config, as far as they tell who its file users are. */
export interface Sources {
  readonly gateway: { readonly login: { readonly sources: readonly SourceConfig[] } }
  readonly users: Readonly<Record<string, UsersConfig>>
}

/** What sessions keep of a file user, so that a later change shows. Never the hash itself. */
export function fileStateOf (username: string, user: User): FileState {
  const digest = (value: unknown) => hash('sha256', JSON.stringify(value), 'base64url').slice(0, 22)
  const { id, name, roles, profile } = identityOf(username, user)
  return {
    password: digest(user.password),
    state: digest([user.password, id, name, roles, profile])
  }
}

/** Who signs in under a name of the file. */
export function identityOf (username: string, user: User): Identity {
  return {
    id: user.id ?? username,
    username,
    name: user.name ?? username,
    roles: user.roles,
    profile: user.profile
  }
}

type Files = ReadonlyMap<string, Readonly<Record<string, User>> | undefined>

/** By the name of the source; undefined for sources of another kind. */
function filesOf ({ gateway, users }: Sources): Files {
  return new Map(gateway.login.sources.map(source => [
    sourceName(source),
    source.kind === 'users-file' ? users[source.file]?.users ?? {} : undefined
  ]))
}

const userOf = (users: Readonly<Record<string, User>>, username: string): User | undefined =>
  Object.hasOwn(users, username) ? users[username] : undefined

/** What becomes of a session under these sources. */
export function reviewAgainst (sources: Sources): Reviewer['review'] {
  const files = filesOf(sources)
  return session => reviewIn(files, session)
}

function reviewIn (files: Files, session: Session): Review {
  const { source, identity, file } = session
  // No such source, or no longer under this name: nobody vouches for the session.
  if (!files.has(source)) return 'refused'
  const users = files.get(source)
  if (users === undefined) return 'unchanged'
  const user = userOf(users, identity.username)
  if (user === undefined || user.disabled) return 'refused'
  const present = identityOf(identity.username, user)
  if (present.id !== identity.id) return 'refused'
  const state = fileStateOf(identity.username, user)
  if (file?.state === state.state) return 'unchanged'
  if (file !== undefined && file.password !== state.password) return 'refused'
  const roles = present.roles.filter(role => identity.roles.includes(role))
  return {
    narrowed: { ...session, identity: { ...present, roles } },
    renewed: { ...session, identity: present, file: state }
  }
}

export type UserChange = 'removed' | 'disabled' | 'password changed' | 'roles or profile changed'

export interface ChangedUser {
  readonly source: string
  readonly username: string
  readonly key: IdentityKey
  readonly change: UserChange
}

/** The file users of `before` whose sessions another config concerns. */
export function changedUsers (before: Sources, after: Sources): ChangedUser[] {
  const next = filesOf(after)
  return [...filesOf(before)].flatMap(([source, users]) => Object.entries(users ?? {})
    .flatMap(([username, user]) => {
      const change = changeOf(username, user, userOf(next.get(source) ?? {}, username))
      if (change === undefined || user.disabled) return []
      const key = identityKey({ source, identity: identityOf(username, user) })
      return [{ source, username, key, change }]
    }))
}

function changeOf (username: string, before: User, after: User | undefined): UserChange | undefined {
  if (after === undefined || (after.id ?? username) !== (before.id ?? username)) return 'removed'
  if (after.disabled) return before.disabled ? undefined : 'disabled'
  if (after.password !== before.password) return 'password changed'
  const isSame = fileStateOf(username, before).state === fileStateOf(username, after).state
  return isSame ? undefined : 'roles or profile changed'
}

/**
 * What may have become of a user who signed in once; undefined for users of no file. Their sessions
 * tell whether it did.
 */
export function changeSince (sources: Sources): (source: string, username: string) => UserChange | undefined {
  const files = filesOf(sources)
  return (source, username) => {
    const users = files.get(source)
    if (users === undefined) return files.has(source) ? undefined : 'removed'
    const user = userOf(users, username)
    if (user === undefined) return 'removed'
    return user.disabled ? 'disabled' : 'roles or profile changed'
  }
}

/** The keys of all users of the files. */
export function fileUserKeys (sources: Sources): IdentityKey[] {
  return [...filesOf(sources)].flatMap(([source, users]) => Object.entries(users ?? {})
    .map(([username, user]) => identityKey({ source, identity: identityOf(username, user) })))
}

export interface FileUsers extends Reviewer {
  /** From now on these are in force. @returns whether they are others than before */
  readonly take: (sources: Sources) => boolean
}

const announceAgainMs = 250

/** @param announce says whether no replica knows a later state of a source; see the store */
export function createFileUsers (announce: SessionStore['announceUsers']): FileUsers {
  let files: Files | undefined
  let digests: ReadonlyMap<string, string> = new Map()
  /** Sources whose change could not be announced yet, with the digest before it. */
  const unannounced = new Map<string, string>()

  let again: NodeJS.Timeout | undefined

  async function isLatest (source: string): Promise<boolean> {
    const digest = digests.get(source)
    if (digest === undefined) return true
    const isLatestNow = await announce(source, digest, unannounced.get(source))
    unannounced.delete(source)
    return isLatestNow
  }

  /** At start the store may not be there yet. */
  function announceAll (): void {
    clearTimeout(again)
    Promise.all([...digests.keys()].map(isLatest)).catch(() => {
      again = setTimeout(announceAll, announceAgainMs).unref()
    })
  }

  return {
    review: session => files === undefined ? 'unchanged' : reviewIn(files, session),
    isLatest,
    take: sources => {
      const before = digests
      files = filesOf(sources)
      digests = digestsOf(files)
      for (const [source, digest] of digests) {
        const former = before.get(source)
        if (former !== undefined && former !== digest && !unannounced.has(source)) unannounced.set(source, former)
      }
      announceAll()
      return [...digests].some(([source, digest]) => before.get(source) !== digest)
    }
  }
}

function digestsOf (files: Files): Map<string, string> {
  return new Map([...files].flatMap(([source, users]) => users === undefined
    ? []
    : [[source, hash('sha256', JSON.stringify(users), 'base64url')] as const]))
}
