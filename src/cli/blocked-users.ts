/** `users block`, `unblock` and `blocked`, through the listener of a running gateway. */
import type { BlockJson } from '../ops/schemas.ts'
import { toMilliseconds } from '../config/schema/primitives.ts'
import { askAdmin, table } from './admin-client.ts'
import { type Invocation, UsageError } from './command.ts'
import { jsonText, printText } from './output.ts'

const path = '/ops/api/users'

export async function blockedUsers({
  gateway,
  rest: [what = '', name, ...more],
  values,
  json,
  io
}: Invocation): Promise<number> {
  const isList = what === 'blocked'
  if ((name === undefined) !== isList || more.length > 0) {
    throw new UsageError(isList ? 'blocked takes no words.' : `Name one user: ${what} USER.`)
  }
  const body = { name, source: values['source'], forMs: millisecondsOf(values['for']) }
  const response = await askAdmin(gateway, `${path}/${what}`, isList ? undefined : body)
  const isMissing = response['unblocked'] === 0
  if (json) io.stdout.write(jsonText(response))
  else if (isMissing) io.stderr.write('No such block: users blocked lists them.\n')
  else if (isList) io.stdout.write(formatBlocks(response['blocked'] as BlockJson[], io.stdout))
  else printText(`${what}ed: ${name}${detailOf(response)}`, io)
  return isMissing ? 3 : 0
}

/** Of a block: its end, and the number of sessions that it has ended. */
function detailOf({
  until,
  closed
}: {
  readonly until?: string
  readonly closed?: number
}): string {
  if (closed === undefined) return ''
  const end = until === undefined ? '' : ` until ${until}`
  return `${end}; sessions closed: ${closed}`
}

/** @throws UsageError */
function millisecondsOf(written: Invocation['values'][string]): number | undefined {
  if (written === undefined) return undefined
  const ms = toMilliseconds(String(written))
  if (Number.isFinite(ms)) return ms
  throw new UsageError(`"${String(written)}" is no duration such as 30m, 2h or 7d.`)
}

function formatBlocks(blocks: readonly BlockJson[], stream: Invocation['io']['stdout']): string {
  if (blocks.length === 0) return 'nobody is blocked\n'
  const rows = blocks.map(({ name, source = 'any', until = 'unblocked' }) => [name, source, until])
  return table([['USER', 'SOURCE', 'UNTIL'], ...rows], stream)
}
