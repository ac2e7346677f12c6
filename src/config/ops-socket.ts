/** The place of a gateway's socket for local commands. */
import { resolve } from 'node:path'
import { readDocument } from './read/document.ts'
import { openFolder, readTree } from './read/files.ts'
import type { Environment } from './read/references.ts'
import { type GatewayConfig, gatewaySchema } from './schema/gateway.ts'
import { asNode } from './schema/node.ts'

/**
 * `ops.socket` of a config folder. Its files may be faulty: commands must work while an operator
 * mends them.
 */
export function opsSocketOf(folder: string, environment: Environment): string | false | undefined {
  const reading = openFolder(folder, environment)
  const tree = readDocument(resolve(folder, 'gateway.yaml'), 'gateway.yaml', reading)
  // Presets do not set `ops`.
  const gateway = tree && readTree(asNode(gatewaySchema), tree, reading)
  const socket: unknown = ((gateway ?? {}) as Partial<GatewayConfig>).ops?.socket
  if (typeof socket === 'string') return resolve(folder, socket)
  return socket === false ? false : undefined
}
