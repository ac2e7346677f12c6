/** The users of config who may be operators. */
import { type GatewayConfig, sourceName } from './gateway.ts'

/** The names of the sources whose users with `ops.role` are operators. */
export function operatorSources({ ops, login }: Pick<GatewayConfig, 'ops' | 'login'>): string[] {
  if (ops.sources.length > 0) return ops.sources
  return login.sources.filter(({ kind }) => kind === 'users-file').map(sourceName)
}
