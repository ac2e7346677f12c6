/** The place of a gateway's socket for local commands. */
import { resolve } from 'node:path'
import { gatewaySchema } from '../schema/gateway.ts'
import { readDocument } from './document.ts'
import { ownLayer } from './layers.ts'
import { completeFile, contextOfFolder } from './read-file.ts'
import type { Environment } from './references.ts'

/**
 * `ops.socket` of a config folder. Its files may be faulty: commands must work while an operator
 * mends them.
 */
export function opsSocketOf(folder: string, environment: Environment): string | false | undefined {
  const context = contextOfFolder(folder, environment)
  const document = readDocument(resolve(folder, 'gateway.yaml'), 'gateway.yaml', context)
  // Presets do not set `ops`.
  const ops =
    document &&
    completeFile(gatewaySchema, { file: ownLayer(document), presets: [] }, context).value.ops
  const socket: unknown = ops?.socket
  if (typeof socket === 'string') return resolve(folder, socket)
  return socket === false ? false : undefined
}
