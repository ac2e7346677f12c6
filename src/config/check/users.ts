/** Rules within a users file. */
import { isObject, type Path } from '../schema/visit.ts'
import type { UsersConfig } from '../schema/users.ts'

type Report = (path: Path, message: string, severity?: 'warning') => void

/** `m=19456,t=2,p=1`; empty for a text that is no hash. */
const costOf = (hash: string): string => /m=\d+,t=\d+,p=\d+/.exec(hash)?.[0] ?? ''

/** An unknown name can cost what one of them does, and not what each does. */
function warnOfCosts(costs: ReadonlySet<string>, report: Report): void {
  const kinds = [...costs].filter(cost => cost !== '')
  if (kinds.length < 2) return
  report(
    ['users'],
    `the hashes differ in cost (${kinds.slice(0, 3).join('; ')}): the time of a wrong password ` +
      'can tell which users exist; make all with `console-gateway hash-password`',
    'warning'
  )
}

/** Upstreams, lists and limits know a user by the id: two users with one id would be one. */
export function checkUsers({ users }: UsersConfig, report: Report): void {
  const usernames = new Map<string, string>()
  const costs = new Set<string>()
  // The value may not match its schema, which has been reported already.
  for (const [username, user] of Object.entries(isObject(users) ? users : {})) {
    if (isObject(user)) checkHash(['users', username, 'password'], user.password, report)
    if (isObject(user) && typeof user.password === 'string') costs.add(costOf(user.password))
    const id = isObject(user) && typeof user.id === 'string' ? user.id : username
    const other = usernames.get(id)
    if (other === undefined) usernames.set(id, username)
    else {
      const where = ['users', username, ...(user.id === undefined ? [] : ['id'])]
      report(where, `users.${other} has the id "${id}" too; give each user an id of its own`)
    }
  }
  warnOfCosts(costs, report)
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
