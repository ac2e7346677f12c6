/** The config of an upstream as a file would give it, with all defaults. */
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/read/load.ts'
import type { UpstreamConfig } from '../../src/config/schema/routes.ts'
import { textFolder } from './config-files.ts'

export function upstreamConfig(
  cleanUp: (undo: () => unknown) => void,
  written: Record<string, unknown>
): UpstreamConfig {
  const text = stringify({ upstreams: { b: written } })
  const { b } = loadConfig(textFolder(cleanUp, { 'routes.yaml': text }), {}).routes.upstreams
  if (b === undefined) throw new Error('no upstream')
  return b
}
