/** `users block`, `unblock` and `blocked`, through the listener of a running gateway. */
import type { BlockJson } from '../ops/schemas.ts'
import { toMilliseconds } from '../config/schema/primitives.ts'
import { askAdmin } from './admin-client.ts'
import { table } from './table.ts'
import { type Invocation, type Output, UsageError } from './command.ts'
import { jsonText, printText } from './output.ts'

const path = '/ops/api/users'

type Blocks = Invocation<{ readonly source?: string; readonly for?: string }>

export async function blockUser({ gateway, rest, values, json, io }: Blocks): Promise<number> {
  const [name] = rest
  const body = { name, source: values.source, forMs: millisecondsOf(values.for) }
  const response = await askAdmin(gateway, `${path}/block`, body)
  if (json) io.stdout.write(jsonText(response))
  else printText(`blocked: ${name}${detailOf(response)}`, io)
  return 0
}

export async function unblockUser({ gateway, rest, values, json, io }: Blocks): Promise<number> {
  const [name] = rest
  const response = await askAdmin(gateway, `${path}/unblock`, { name, source: values.source })
  const isMissing = response['unblocked'] === 0
  if (json) io.stdout.write(jsonText(response))
  else if (isMissing) io.stderr.write('No such block: users blocked lists them.\n')
  else printText(`unblocked: ${name}`, io)
  return isMissing ? 3 : 0
}

export async function listBlocked({ gateway, json, io }: Invocation): Promise<number> {
  const response = await askAdmin(gateway, `${path}/blocked`)
  const blocks = response['blocked'] as BlockJson[]
  io.stdout.write(json ? jsonText(response) : formatBlocks(blocks, io.stdout))
  return 0
}

/** Of a block: its end, and the number of sessions that it has ended. */
function detailOf({
  until,
  closed
}: {
  readonly until?: string
  readonly closed?: number
}): string {
  const end = until === undefined ? '' : ` until ${until}`
  return `${end}; sessions closed: ${closed}`
}

/** @throws UsageError */
function millisecondsOf(written: string | undefined): number | undefined {
  if (written === undefined) return undefined
  const ms = toMilliseconds(written)
  if (Number.isFinite(ms)) return ms
  throw new UsageError(`"${written}" is no duration such as 30m, 2h or 7d.`)
}

function formatBlocks(blocks: readonly BlockJson[], stream: Output): string {
  if (blocks.length === 0) return 'nobody is blocked\n'
  const rows = blocks.map(({ name, source = 'any', until = 'unblocked' }) => [name, source, until])
  return table([['USER', 'SOURCE', 'UNTIL'], ...rows], stream)
}
