/** Users of YAML files, argon2id hashes: they sign in, and the files in force say who they are. */
import { hash } from 'node:crypto'
import type { SourceConfig } from '../config/schema/gateway.ts'
import { keySource } from '../config/schema/login.ts'
import type { UsersConfig } from '../config/schema/users.ts'
import type { Identity, Session } from '../session/types.ts'
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

/** What tells whether a session's user is still the one of the file. */
type Reviewed = Pick<Session, 'source' | 'identity'> & { readonly password?: string | undefined }

/** By the name of the source; undefined for sources of another kind. */
export function filesOf({ gateway, users }: Sources): ReadonlyMap<string, Users | undefined> {
  return new Map(
    Object.entries(gateway.login.sources).map(([name, source]) => [
      name,
      source.kind === 'users-file' ? (users[source.file]?.users ?? {}) : undefined
    ])
  )
}

export function userOf(users: Users = {}, username: string): User | undefined {
  return Object.hasOwn(users, username) ? users[username] : undefined
}

export function createFileUsers() {
  let files: ReturnType<typeof filesOf> | undefined
  return {
    activate: (sources: Sources): void => {
      files = filesOf(sources)
    },
    /** As the file has the user now; undefined for one who is gone or has another password. */
    review: <S extends Reviewed>(session: S): S | undefined => {
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
