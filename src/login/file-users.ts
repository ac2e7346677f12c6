/** The users files in force, and the review of sessions against them. */
import { hash } from 'node:crypto'
import { type SourceConfig, sourceName } from '../config/schema/gateway.ts'
import type { UsersConfig } from '../config/schema/users.ts'
import { type IdentityKey, identityKey } from '../session/identity-key.ts'
import type { FileState, Identity, Session } from '../session/record.ts'
import type { Review, Reviewer } from '../session/review.ts'
import type { SessionStore } from '../session/store.ts'

type User = UsersConfig['users'][string]

/** The parts of a config that define its file users. */
export interface Sources {
  readonly gateway: { readonly login: { readonly sources: readonly SourceConfig[] } }
  readonly users: Readonly<Record<string, UsersConfig>>
}

/** Digests of a file user's state, kept in the session to detect changes. Never the hash itself. */
export function fileStateOf(username: string, user: User): FileState {
  const digest = (value: unknown) => hash('sha256', JSON.stringify(value), 'base64url').slice(0, 22)
  const { id, name, roles, profile } = identityOf(username, user)
  return {
    password: digest(user.password),
    state: digest([user.password, id, name, roles, profile])
  }
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

type Files = ReadonlyMap<string, Readonly<Record<string, User>> | undefined>

/** By the name of the source; undefined for sources of another kind. */
function filesOf({ gateway, users }: Sources): Files {
  return new Map(
    gateway.login.sources.map(source => [
      sourceName(source),
      source.kind === 'users-file' ? (users[source.file]?.users ?? {}) : undefined
    ])
  )
}

const userOf = (users: Readonly<Record<string, User>>, username: string): User | undefined =>
  Object.hasOwn(users, username) ? users[username] : undefined

/** The review of sessions once `after` is in force. */
export function reviewAgainst(after: Sources): Reviewer['review'] {
  const files = filesOf(after)
  return session => reviewIn(files, session)
}

function reviewIn(files: Files, session: Session): Review {
  const { source, identity, file } = session
  // A session whose source was removed or renamed has nothing left that confirms its user.
  if (!files.has(source)) return 'refused'
  const users = files.get(source)
  if (users === undefined) return 'unchanged'
  const user = userOf(users, identity.username)
  if (user === undefined || user.disabled) return 'refused'
  const current = identityOf(identity.username, user)
  const state = fileStateOf(identity.username, user)
  if (current.id !== identity.id || file?.password !== state.password) return 'refused'
  if (file.state === state.state) return 'unchanged'
  const roles = current.roles.filter(role => identity.roles.includes(role))
  return {
    narrowed: { ...session, identity: { ...current, roles } },
    renewed: { ...session, identity: current, file: state }
  }
}

export type UserChange = 'removed' | 'disabled' | 'password changed' | 'roles or profile changed'

interface FileUser {
  readonly source: string
  readonly username: string
  readonly key: IdentityKey
}

export interface ChangedUser extends FileUser {
  readonly change: UserChange
}

/** The file users of `before` whose sessions a change of config affects. */
export function changedUsers(before: Sources, after: Sources): ChangedUser[] {
  const next = filesOf(after)
  return [...filesOf(before)].flatMap(([source, users]) =>
    Object.entries(users ?? {}).flatMap(([username, user]) => {
      const change = changeOf(username, user, userOf(next.get(source) ?? {}, username))
      if (change === undefined || user.disabled) return []
      const key = identityKey({ source, identity: identityOf(username, user) })
      return [{ source, username, key, change }]
    })
  )
}

function changeOf(username: string, before: User, after: User | undefined): UserChange | undefined {
  if (after === undefined || (after.id ?? username) !== (before.id ?? username)) return 'removed'
  if (after.disabled) return before.disabled ? undefined : 'disabled'
  if (after.password !== before.password) return 'password changed'
  const isSame = fileStateOf(username, before).state === fileStateOf(username, after).state
  return isSame ? undefined : 'roles or profile changed'
}

/**
 * The possible change of a user who signed in earlier; undefined for users of other kinds of
 * source. Their sessions show whether it happened.
 */
export function changeSince(
  sources: Sources
): (source: string, username: string) => UserChange | undefined {
  const files = filesOf(sources)
  return (source, username) => {
    const users = files.get(source)
    if (users === undefined) return files.has(source) ? undefined : 'removed'
    const user = userOf(users, username)
    if (user === undefined) return 'removed'
    return user.disabled ? 'disabled' : 'roles or profile changed'
  }
}

/** All users of the files. */
export function fileUsersOf(sources: Sources): FileUser[] {
  return [...filesOf(sources)].flatMap(([source, users]) =>
    Object.entries(users ?? {}).map(([username, user]) => {
      const key = identityKey({ source, identity: identityOf(username, user) })
      return { source, username, key }
    })
  )
}

export interface FileUsers extends Reviewer {
  /**
   * Puts a config's users in force.
   * @returns whether they differ from the former ones
   */
  readonly activate: (sources: Sources) => boolean
  /**
   * Tells the store which files are in force. Called when the store comes up: replicas are compared
   * by the order in which their files were announced, so that none may be used before it.
   */
  readonly announce: () => void
}

/** What replicas tell of the names of all sources; no source has this name. */
const allSources = '*sources'
const announceRetryMs = 250
/** Of a source that changes while the store is away; the store keeps a hundred. */
const maxUnannounced = 10

interface Options {
  /** Called once for each state of a users file that another replica has replaced. */
  readonly onOutdated?: (source: string) => void
}

/** @param announce resolves to whether no replica knows a later state of a source */
export function createFileUsers(
  announce: SessionStore['announceUsers'],
  { onOutdated = () => {} }: Options = {}
): FileUsers {
  let files: Files | undefined
  let digests: ReadonlyMap<string, string> = new Map()
  /** By changed source, the digests before the present one that the store may not know. */
  const unannounced = new Map<string, readonly string[]>()

  const outdated = new Map<string, string>()
  let retryTimer: NodeJS.Timeout | undefined

  function noteOutdated(source: string, digest: string, isLatestNow: boolean): void {
    if (source === allSources || outdated.get(source) === digest) return
    if (isLatestNow || digests.get(source) !== digest) return
    outdated.set(source, digest)
    onOutdated(source)
  }

  async function isLatest(source: string): Promise<boolean> {
    // A source that this process does not have may be one that later processes have.
    if (files?.has(source) === false && source !== allSources) return await isLatest(allSources)
    const digest = digests.get(source)
    if (digest === undefined) return true
    const formers = unannounced.get(source) ?? []
    let before: string | undefined
    for (const former of formers) {
      if (before !== undefined) await announce(source, former, before)
      before = former
    }
    const isLatestNow = await announce(source, digest, before)
    const changedMeanwhile = unannounced.get(source)?.filter(each => !formers.includes(each)) ?? []
    unannounced.set(source, changedMeanwhile)
    noteOutdated(source, digest, isLatestNow)
    return isLatestNow
  }

  /** Retried: the store may be away, or refuse it. */
  function announceAll(): void {
    clearTimeout(retryTimer)
    Promise.all([...digests.keys()].map(isLatest)).catch(() => {
      retryTimer = setTimeout(announceAll, announceRetryMs).unref()
    })
  }

  return {
    review: session => (files === undefined ? 'unchanged' : reviewIn(files, session)),
    isLatest,
    announce: announceAll,
    activate: sources => {
      const before = digests
      files = filesOf(sources)
      digests = digestsOf(files)
      for (const [source, digest] of digests) {
        const former = before.get(source)
        if (former === undefined || former === digest) continue
        const formers = [...(unannounced.get(source) ?? []), former]
        // After a change and back, the store may have the one without a reply: only what came since
        // the first counts.
        const since = formers.slice(formers.indexOf(digest) + 1)
        unannounced.set(source, since.slice(-maxUnannounced))
      }
      announceAll()
      return [...digests].some(([source, digest]) => before.get(source) !== digest)
    }
  }
}

function digestsOf(files: Files): Map<string, string> {
  const digest = (value: unknown) => hash('sha256', JSON.stringify(value), 'base64url')
  const digests = new Map([[allSources, digest([...files.keys()].toSorted())]])
  for (const [source, users] of files) {
    if (users !== undefined) digests.set(source, digest(users))
  }
  return digests
}
