import { amountOf } from '../config/schema/primitives.ts'
import { printable } from '../observability/unprintable.ts'
import type { BlockJson } from '../ops/users.ts'
import type { CreatedKey, KeyJson } from '../ops/keys.ts'
import { ask, askAndPrint } from './ask.ts'
import { type Invocation, type Output, UsageError } from './command.ts'
import { type Columns, jsonText, table } from './output.ts'

const users = '/ops/api/users'
const keys = '/ops/api/keys'

const nobodyThere =
  'Nobody with this name is signed in. It is the name that `sessions list` shows, which may not be ' +
  'the one that is typed.\n'

type Blocks = Invocation<{ readonly source?: string; readonly for?: string }>

export async function blockUser(invocation: Blocks): Promise<void> {
  const { source, for: written } = invocation.values
  const body = { name: invocation.rest[0], source, forMs: millisecondsOf(written) }
  const inWords = ({ name, until, closed }: BlockJson & { readonly closed: number }) => {
    const end = until === undefined ? '' : ` until ${until}`
    const nobody = closed === 0 ? nobodyThere : ''
    return `blocked: ${printable(name + end)}; sessions closed: ${closed}\n${nobody}`
  }
  await askAndPrint(invocation, [`${users}/block`, body], inWords)
}

export async function unblockUser(invocation: Blocks): Promise<number> {
  const missing = 'No such block: users blocked lists them.'
  return await endNamed(invocation, `${users}/unblock`, ['unblocked', missing])
}

const blockColumns: Columns<BlockJson> = {
  USER: ({ name }) => name,
  SOURCE: ({ source = 'any' }) => source,
  UNTIL: ({ until = 'unblocked' }) => until
}

export async function listBlocked(invocation: Invocation): Promise<void> {
  const inWords = ({ blocked }: { readonly blocked: readonly BlockJson[] }, stream: Output) =>
    table(blocked, blockColumns, stream, 'nobody is blocked')
  await askAndPrint(invocation, [`${users}/blocked`], inWords)
}

type Create = Invocation<{ readonly role?: readonly string[]; readonly for?: string }>

export async function createKey(invocation: Create): Promise<void> {
  const { role: roles, for: written } = invocation.values
  const body = { name: invocation.rest[0], roles, forMs: millisecondsOf(written) }
  const inWords = ({ key }: CreatedKey) => `${key}\n`
  const { expiresAt } = await askAndPrint(invocation, [`${keys}/create`, body], inWords)
  // Not among the output, which is the key alone.
  invocation.io.stderr.write(`Keep this key now: it is not shown again. It expires ${expiresAt}.\n`)
}

export async function revokeKey(invocation: Invocation): Promise<number> {
  const missing = 'No such key: keys list shows them.'
  return await endNamed(invocation, `${keys}/revoke`, ['revoked', missing])
}

const keyColumns: Columns<KeyJson> = {
  'KEY': ({ name }) => name,
  'ROLES': ({ roles }) => roles.join(', '),
  'LAST USED': ({ lastUsedAt = 'never' }) => lastUsedAt,
  'EXPIRES': ({ expiresAt }) => expiresAt,
  'CREATED BY': ({ createdBy }) => createdBy
}

export async function listKeys(invocation: Invocation): Promise<void> {
  const inWords = (answer: { readonly keys: readonly KeyJson[] }, stream: Output) =>
    table(answer.keys, keyColumns, stream, 'no keys')
  await askAndPrint(invocation, [keys], inWords)
}

/** @param done the member of the response with their number, and what is said where it is 0 */
async function endNamed(
  { gateway, rest: [name = ''], values, json, io }: Invocation,
  path: string,
  [done, missing]: readonly [string, string]
): Promise<number> {
  const response = await ask(gateway, path, { name, source: values['source'] })
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
