/** Credential source: users of a YAML file, argon2id hashes. */
import type { UsersConfig } from '../config/schema/users.ts'
import { decoyHash, parseHash, verifyPassword } from './argon2.ts'
import type { CredentialSource } from './credential-source.ts'
import { identityOf, passwordDigest } from './file-users.ts'

type Hash = ReturnType<typeof parseHash>

const workOf = ({ memory, passes }: Hash) => memory * passes

/**
 * A hash of the cost that most have, or the greatest such cost: then the time of a refusal tells an
 * unknown user from as few users as possible.
 */
function mostUsual(hashes: readonly Hash[]): Hash | undefined {
  const groups = new Map<string, { readonly hash: Hash; count: number }>()
  for (const hash of hashes) {
    const cost = [hash.memory, hash.passes, hash.parallelism, hash.tag.length].join(' ')
    const group = groups.get(cost)
    if (group === undefined) groups.set(cost, { hash, count: 1 })
    else group.count++
  }
  const usual = [...groups.values()].toSorted(
    (a, b) => b.count - a.count || workOf(b.hash) - workOf(a.hash)
  )
  return usual[0]?.hash
}

/** @param decides whether no further source is asked for a user name of this file */
export function createUsersFile(
  name: string,
  { users }: UsersConfig,
  decides = true
): CredentialSource {
  const usersByName = new Map(
    Object.entries(users).map(([username, user]) => [
      username,
      { ...user, hash: parseHash(user.password) }
    ])
  )
  const decoy = decoyHash(mostUsual([...usersByName.values()].map(({ hash }) => hash)))
  return {
    name,
    async verify({ username, password }) {
      const user = usersByName.get(username)
      const matches = await verifyPassword(password, user?.hash ?? decoy)
      if (!matches || user === undefined || user.disabled) {
        const decision = user === undefined ? { isUnknown: true } : { isFinal: true }
        return { vouched: false, ...(decides && decision) }
      }
      return {
        vouched: true,
        identity: identityOf(username, user),
        password: passwordDigest(user)
      }
    }
  }
}
