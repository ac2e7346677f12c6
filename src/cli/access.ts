import { amountOf } from '../config/schema/primitives.ts'
import { printable } from '../observability/unprintable.ts'
import type { BlockJson } from '../ops/users.ts'
import type { CreatedKey, KeyJson } from '../ops/keys.ts'
import { ask, askAndPrint } from './ask.ts'
import { type Invocation, type Output, UsageError } from './command.ts'
import { jsonText, table } from './output.ts'

const users = '/ops/api/users'
const keys = '/ops/api/keys'

const nobodyThere =
  'Nobody with this name is signed in. It is the name that `sessions list` shows, which may not be ' +
  'the one that is typed.'

type Blocks = Invocation<{ readonly source?: string; readonly for?: string }>

export async function blockUser(invocation: Blocks): Promise<number> {
  const { rest, values } = invocation
  const [name = ''] = rest
  const body = { name, source: values.source, forMs: millisecondsOf(values.for) }
  const inWords = ({ until, closed }: BlockJson & { readonly closed: number }) => {
    const end = until === undefined ? '' : ` until ${until}`
    const nobody = closed === 0 ? `${nobodyThere}\n` : ''
    return `blocked: ${printable(name + end)}; sessions closed: ${closed}\n${nobody}`
  }
  await askAndPrint(invocation, [`${users}/block`, body], inWords)
  return 0
}

export async function unblockUser(invocation: Blocks): Promise<number> {
  const { source } = invocation.values
  const missing = 'No such block: users blocked lists them.'
  return await endNamed(invocation, [`${users}/unblock`, { source }], ['unblocked', missing])
}

export async function listBlocked(invocation: Invocation): Promise<number> {
  const inWords = ({ blocked }: { readonly blocked: readonly BlockJson[] }, stream: Output) => {
    if (blocked.length === 0) return 'nobody is blocked\n'
    const rows = blocked.map(({ name, source = 'any', until = 'unblocked' }) => [
      name,
      source,
      until
    ])
    return table(['USER', 'SOURCE', 'UNTIL'], rows, stream)
  }
  await askAndPrint(invocation, [`${users}/blocked`], inWords)
  return 0
}

type Create = Invocation<{ readonly role?: readonly string[]; readonly for?: string }>

export async function createKey(invocation: Create): Promise<number> {
  const { rest, values, io } = invocation
  const [name = ''] = rest
  const body = { name, roles: values.role, forMs: millisecondsOf(values.for) }
  const inWords = ({ key }: CreatedKey) => `${key}\n`
  const { expiresAt } = await askAndPrint(invocation, [`${keys}/create`, body], inWords)
  // Not among the output, which is the key alone.
  io.stderr.write(`Keep this key now: it is not shown again. It expires ${expiresAt}.\n`)
  return 0
}

export async function revokeKey(invocation: Invocation): Promise<number> {
  const missing = 'No such key: keys list shows them.'
  return await endNamed(invocation, [`${keys}/revoke`, {}], ['revoked', missing])
}

export async function listKeys(invocation: Invocation): Promise<number> {
  await askAndPrint(invocation, [keys], keysText)
  return 0
}

function keysText(answer: { readonly keys: readonly KeyJson[] }, stream: Output): string {
  if (answer.keys.length === 0) return 'no keys\n'
  const rows = answer.keys.map(({ name, roles, lastUsedAt = 'never', expiresAt, createdBy }) => [
    name,
    roles.join(', '),
    lastUsedAt,
    expiresAt,
    createdBy
  ])
  return table(['KEY', 'ROLES', 'LAST USED', 'EXPIRES', 'CREATED BY'], rows, stream)
}

/** @param done the member of the response with their number, and what is said where it is 0 */
async function endNamed(
  { gateway, rest, json, io }: Pick<Invocation, 'gateway' | 'rest' | 'json' | 'io'>,
  [path, body]: readonly [path: string, body: object],
  [done, missing]: readonly [string, string]
): Promise<number> {
  const [name = ''] = rest
  const response = await ask(gateway, path, { name, ...body })
  const isMissing = response[done] === 0
  if (json) io.stdout.write(jsonText(response))
  else if (isMissing) io.stderr.write(`${missing}\n`)
  else io.stdout.write(`${done}: ${printable(name)}\n`)
  return isMissing ? 3 : 0
}

/** @throws UsageError */
function millisecondsOf(written: string | undefined): number | undefined {
  if (written === undefined) return undefined
  const ms = amountOf('x-duration', written)
  if (Number.isFinite(ms)) return ms
  throw new UsageError(`"${written}" is no duration such as 30m, 2h or 7d.`)
}
