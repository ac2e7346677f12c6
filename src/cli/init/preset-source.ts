/** The sign-in call of a back-end's preset, which `init` then tries. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../config/load/load.ts'
import { ConfigError } from '../../config/schema/faults.ts'
import type { SourceConfig } from '../../config/schema/gateway.ts'
import type { SignInCall } from './sign-in.ts'

export interface PresetSource {
  readonly call: SignInCall
  /** The path of its call for the user. */
  readonly userPath?: string
  readonly logoutPath?: string
  /** Headers that it always sends. */
  readonly headers: Readonly<Record<string, string>>
}

/** Undefined for a preset that leaves the sign-in to the user's files. */
export function presetSource(preset: string, url: string): PresetSource | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'console-gateway-init-'))
  const write = (name: string, value: unknown) =>
    writeFileSync(join(folder, name), JSON.stringify(value))
  const source = { kind: 'upstream-login', name: 'backend', upstream: 'backend' }
  const session = { cookie: { secure: false } }
  try {
    write('gateway.yaml', { backend: preset, session, login: { sources: [source] } })
    write('routes.yaml', { upstreams: { backend: { url } } })
    write('limits.yaml', {})
    const { gateway, routes } = loadConfig(folder, {})
    const { headers } = routes.upstreams['backend'] ?? {}
    return sourceParts(gateway.login.sources[0], headers ?? {})
  } catch (error) {
    if (error instanceof ConfigError) return undefined
    throw error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The parts of a source that `init` needs; undefined for one of another kind. */
function sourceParts(
  source: SourceConfig | undefined,
  headers: Readonly<Record<string, string>>
): PresetSource | undefined {
  if (source?.kind !== 'upstream-login') return undefined
  const members = Object.entries(source.body)
  const nameOf = (template: string) => members.find(([, value]) => value === template)?.[0]
  const [username, password] = [nameOf('{username}'), nameOf('{password}')]
  if (username === undefined || password === undefined) return undefined
  const others = members.filter(([name]) => name !== username && name !== password)
  const from = source.user.from?.path
  const logout = source.logout?.path
  return {
    call: {
      path: source.path,
      format: source.format,
      username,
      password,
      extra: Object.fromEntries(others)
    },
    headers: { ...headers, ...source.headers },
    ...(from !== undefined && { userPath: from }),
    ...(logout !== undefined && { logoutPath: logout })
  }
}
