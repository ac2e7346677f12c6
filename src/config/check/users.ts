/** Rules within a users file. */
import type { Path } from '../schema/node.ts'
import type { UsersConfig } from '../schema/users.ts'
import type { Report } from './report.ts'

/** RFC 9106's larger recommendation. Two hashes are computed at once. */
const maxMemoryKiB = 2_097_152
const maxPasses = 100
const maxLanes = 64

/** Upstreams, lists and limits know a user by the id: two users with one id would be one. */
export function checkUsers({ users }: UsersConfig, report: Report): void {
  const usernames = new Map<string, string>()
  for (const [username, user] of Object.entries(users)) {
    const { id = username } = user
    const [cost = ''] = /m=\d+,t=\d+,p=\d+/.exec(user.password) ?? []
    checkCost(['users', username, 'password'], cost, report)
    const other = usernames.get(id)
    if (other === undefined) usernames.set(id, username)
    else {
      const where = ['users', username, ...(user.id === undefined ? [] : ['id'])]
      report(where, `users.${other} has the id "${id}" too; give each user an id of its own`)
    }
  }
}

/** Too high a cost makes each sign-in of this user fail, or the process run out of memory. */
function checkCost(path: Path, cost: string, report: Report): void {
  const [memory = 0, passes = 0, lanes = 0] = (cost.match(/\d+/g) ?? []).map(Number)
  if (memory <= maxMemoryKiB && passes <= maxPasses && lanes <= maxLanes) return
  report(
    path,
    `costs too much to verify (m=${memory} KiB, t=${passes}, p=${lanes}): at most ` +
      `m=${maxMemoryKiB}, t=${maxPasses}, p=${maxLanes}; make one with \`console-gateway hash-password\``
  )
}
