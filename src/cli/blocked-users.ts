/** `users block`, `unblock` and `blocked`. */
import { amountOf } from '../config/schema/primitives.ts'
import { printable } from '../observability/unprintable.ts'
import type { BlockJson } from '../ops/blocked-users.ts'
import { ask, askAndPrint } from './ask.ts'
import { type Invocation, type Output, UsageError } from './command.ts'
import { jsonText, table } from './output.ts'

const path = '/ops/api/users'

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
  await askAndPrint(invocation, [`${path}/block`, body], inWords)
  return 0
}

export async function unblockUser({ gateway, rest, values, json, io }: Blocks): Promise<number> {
  const [name = ''] = rest
  const response = await ask(gateway, `${path}/unblock`, { name, source: values.source })
  const isMissing = response['unblocked'] === 0
  if (json) io.stdout.write(jsonText(response))
  else if (isMissing) io.stderr.write('No such block: users blocked lists them.\n')
  else io.stdout.write(`unblocked: ${printable(name)}\n`)
  return isMissing ? 3 : 0
}

export async function listBlocked(invocation: Invocation): Promise<number> {
  await askAndPrint(invocation, [`${path}/blocked`], blocksText)
  return 0
}

/** @throws UsageError */
export function millisecondsOf(written: string | undefined): number | undefined {
  if (written === undefined) return undefined
  const ms = amountOf('x-duration', written)
  if (Number.isFinite(ms)) return ms
  throw new UsageError(`"${written}" is no duration such as 30m, 2h or 7d.`)
}

function blocksText(
  { blocked }: { readonly blocked: readonly BlockJson[] },
  stream: Output
): string {
  if (blocked.length === 0) return 'nobody is blocked\n'
  const rows = blocked.map(({ name, source = 'any', until = 'unblocked' }) => [name, source, until])
  return table(['USER', 'SOURCE', 'UNTIL'], rows, stream)
}
