/** `ops`: a link that opens the operators' page once. */
import { ask } from './ask.ts'
import { CommandError, type Invocation } from './command.ts'
import { jsonText } from './output.ts'

export async function ops({ gateway, json, io }: Invocation): Promise<number> {
  const { url: local } = await ask(gateway, '/ops/api/link', {})
  const link = typeof local === 'string' ? URL.parse(local) : null
  if (link === null) throw new CommandError('The response to /ops/api/link has no link.')
  // From afar, the gateway's own address is not the one by which it is reached.
  const isHere = gateway?.socketPath !== undefined
  const url = isHere ? link.href : `${gateway?.base}${link.pathname}`
  io.stdout.write(json ? jsonText({ url }) : `${url}\n`)
  io.stderr.write('It opens the operators’ page once, within two minutes.\n')
  return 0
}
