/** Rules within a users file. */
import type { UsersConfig } from '../schema/users.ts'
import type { Report } from './report.ts'

/** Upstreams, lists and limits know a user by the id: two users with one id would be one. */
export function checkUsers({ users }: UsersConfig, report: Report): void {
  const usernames = new Map<string, string>()
  for (const [username, user] of Object.entries(users)) {
    const { id = username } = user
    const other = usernames.get(id)
    if (other === undefined) usernames.set(id, username)
    else {
      const where = ['users', username, ...(user.id === undefined ? [] : ['id'])]
      report(where, `users.${other} has the id "${id}" too; give each user an id of its own`)
    }
  }
}
