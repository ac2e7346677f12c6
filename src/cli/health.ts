/** `health`: whether a gateway takes requests, for health checks of containers and units. */
import { membersOf, send } from './ask.ts'
import type { Invocation } from './command.ts'
import { jsonText } from './output.ts'

export async function health({ gateway, json, io }: Invocation): Promise<number> {
  if (gateway === undefined) return 1
  const { status, text } = await send(gateway, '/readyz')
  const parts = membersOf(text) ?? { status: `answered ${status}` }
  const lines = Object.entries(parts).map(([name, state]) => `${name}: ${String(state)}\n`)
  io.stdout.write(json ? jsonText(parts) : lines.join(''))
  return status === 200 ? 0 : 1
}
