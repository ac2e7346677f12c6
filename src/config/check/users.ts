/** Rules within a users file. */
import { isObject, type Path } from '../visit.ts'
import type { UsersConfig } from '../users.ts'

type Report = (path: Path, message: string) => void

/** The id is who a user is for upstreams, lists and limits: two users with one id would be one. */
export function checkUsers ({ users }: UsersConfig, report: Report): void {
  const known = new Map<string, string>()
  // The value may not fit its schema, which is told elsewhere.
  for (const [username, user] of Object.entries(isObject(users) ? users : {})) {
    const id = isObject(user) && typeof user.id === 'string' ? user.id : username
    const other = known.get(id)
    if (other === undefined) known.set(id, username)
    else {
      const where = ['users', username, ...(user.id === undefined ? [] : ['id'])]
      report(where, `users.${other} has the id "${id}" too; give each user an id of its own`)
    }
  }
}
