/** The users of config who may be operators. */
import type { GatewayConfig } from './gateway.ts'

/** The names of the sources whose users with `ops.role` are operators. */
export function operatorSources({ ops, login }: Pick<GatewayConfig, 'ops' | 'login'>): string[] {
  if (ops.sources.length > 0) return ops.sources
  const names = Object.keys(login.sources)
  return names.filter(name => login.sources[name]?.kind === 'users-file')
}
