/** Credential source: users of a YAML file, argon2id hashes. */
import type { UsersConfig } from '../config/schema/users.ts'
import { decoyHash, parseHash, verifyPassword } from './argon2.ts'
import type { CredentialSource } from './credential-source.ts'
import { fileStateOf, identityOf } from './file-users.ts'

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
  const decoy = decoyHash([...usersByName.values()][0]?.hash)
  return {
    name,
    async verify({ username, password }) {
      const user = usersByName.get(username)
      const matches = await verifyPassword(password, user?.hash ?? decoy)
      if (!matches || user === undefined || user.disabled) {
        return { vouched: false, ...(decides && user !== undefined && { isFinal: true }) }
      }
      return {
        vouched: true,
        identity: identityOf(username, user),
        file: fileStateOf(username, user)
      }
    }
  }
}
