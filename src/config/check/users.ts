/** Rules within a users file. */
import { isObject, type Path } from '../schema/visit.ts'
import type { UsersConfig } from '../schema/users.ts'

type Report = (path: Path, message: string) => void

/** Upstreams, lists and limits know a user by the id: two users with one id would be one. */
export function checkUsers({ users }: UsersConfig, report: Report): void {
  const usernames = new Map<string, string>()
  // The value may not match its schema, which has been reported already.
  for (const [username, user] of Object.entries(isObject(users) ? users : {})) {
    if (isObject(user)) checkHash(['users', username, 'password'], user.password, report)
    const id = isObject(user) && typeof user.id === 'string' ? user.id : username
    const other = usernames.get(id)
    if (other === undefined) usernames.set(id, username)
    else {
      const where = ['users', username, ...(user.id === undefined ? [] : ['id'])]
      report(where, `users.${other} has the id "${id}" too; give each user an id of its own`)
    }
  }
}

/** RFC 9106's larger recommendation. Two hashes are computed at once. */
const maxMemoryKiB = 2_097_152
const maxPasses = 100
const maxLanes = 64

/** Too high a cost makes each sign-in of this user fail, or the process run out of memory. */
function checkHash(path: Path, hash: unknown, report: Report): void {
  if (typeof hash !== 'string') return
  const [, memory, passes, lanes] = /m=(\d+),t=(\d+),p=(\d+)/.exec(hash)?.map(Number) ?? []
  if (memory === undefined || passes === undefined || lanes === undefined) return
  if (memory <= maxMemoryKiB && passes <= maxPasses && lanes <= maxLanes) return
  report(
    path,
    `costs too much to verify (m=${memory} KiB, t=${passes}, p=${lanes}): at most ` +
      `m=${maxMemoryKiB}, t=${maxPasses}, p=${maxLanes}; make one with \`console-gateway hash-password\``
  )
}
