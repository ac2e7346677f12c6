/** `keys create`, `list` and `revoke`. */
import { printable } from '../observability/unprintable.ts'
import type { CreatedKey, KeyJson } from '../ops/keys.ts'
import { ask, askAndPrint } from './ask.ts'
import { millisecondsOf } from './blocked-users.ts'
import type { Invocation, Output } from './command.ts'
import { jsonText, table } from './output.ts'

const path = '/ops/api/keys'

type Create = Invocation<{ readonly role?: readonly string[]; readonly for?: string }>

export async function createKey(invocation: Create): Promise<number> {
  const { rest, values, io } = invocation
  const [name = ''] = rest
  const body = { name, roles: values.role, forMs: millisecondsOf(values.for) }
  const inWords = ({ key }: CreatedKey) => `${key}\n`
  const { expiresAt } = await askAndPrint(invocation, [`${path}/create`, body], inWords)
  // Not among the output, which is the key alone.
  io.stderr.write(`Keep this key now: it is not shown again. It expires ${expiresAt}.\n`)
  return 0
}

export async function listKeys(invocation: Invocation): Promise<number> {
  await askAndPrint(invocation, [path], keysText)
  return 0
}

export async function revokeKey({ gateway, rest, json, io }: Invocation): Promise<number> {
  const [name = ''] = rest
  const response = await ask(gateway, `${path}/revoke`, { name })
  const isMissing = response['revoked'] === 0
  if (json) io.stdout.write(jsonText(response))
  else if (isMissing) io.stderr.write('No such key: keys list shows them.\n')
  else io.stdout.write(`revoked: ${printable(name)}\n`)
  return isMissing ? 3 : 0
}

function keysText({ keys }: { readonly keys: readonly KeyJson[] }, stream: Output): string {
  if (keys.length === 0) return 'no keys\n'
  const rows = keys.map(({ name, roles, lastUsedAt = 'never', expiresAt, createdBy }) => [
    name,
    roles.join(', '),
    lastUsedAt,
    expiresAt,
    createdBy
  ])
  return table(['KEY', 'ROLES', 'LAST USED', 'EXPIRES', 'CREATED BY'], rows, stream)
}
