/** Parts of tests of sign-in at a back-end. */
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/read/load.ts'
import type { UpstreamConfig } from '../../src/config/schema/routes.ts'
import type { UpstreamLoginConfig } from '../../src/config/schema/upstream-login.ts'
import type { Credential, Session } from '../../src/session/types.ts'
import { textFolder } from './config-files.ts'
import { signInAt } from './sign-in.ts'

export const credential: Credential = { token: 't-1', refreshToken: 'r&=1', cookies: 'sid=abc' }

/** The config of a source with all defaults, and these members as the gateway reads them. */
export function signInConfig(
  cleanUp: (undo: () => unknown) => void,
  over: Partial<UpstreamLoginConfig> = {}
): UpstreamLoginConfig {
  const { gateway, routes } = signInAt('http://127.0.0.1:1')
  const files = { 'gateway.yaml': stringify(gateway), 'routes.yaml': stringify(routes) }
  const { b: source } = loadConfig(textFolder(cleanUp, files), {}).gateway.login.sources
  if (source?.kind !== 'upstream-login') throw new Error('no such source')
  return { ...source, ...over }
}

/** The config of an upstream as a file would give it, with all defaults. */
export function upstreamConfig(
  cleanUp: (undo: () => unknown) => void,
  written: Record<string, unknown>
): UpstreamConfig {
  const text = stringify({ upstreams: { b: written } })
  const { b } = loadConfig(textFolder(cleanUp, { 'routes.yaml': text }), {}).routes.upstreams
  if (b === undefined) throw new Error('no upstream')
  return b
}

export function sessionWith(held?: Credential): Session {
  return {
    id: 's',
    identity: { id: '1', username: 'alice', name: 'Alice', roles: [], profile: {} },
    source: 'b',
    remembered: false,
    createdAt: 0,
    idleMs: 1,
    address: '',
    agent: '',
    ...(held && { credential: held })
  }
}
