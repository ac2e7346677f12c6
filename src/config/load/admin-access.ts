/** Address and secret of a gateway's operators' listener, for commands. */
import { resolve } from 'node:path'
import { ConfigError, type Fault } from '../schema/faults.ts'
import { gatewaySchema, type GatewayConfig } from '../schema/gateway.ts'
import { withEnvFile } from './env-file.ts'
import { createInputs } from './inputs.ts'
import { readDocument } from './document.ts'
import { ownLayer } from './layers.ts'
import { completeFile } from './read-file.ts'
import type { Environment } from './references.ts'

type OpsAccess = Pick<GatewayConfig['ops'], 'listen' | 'secret'>

/**
 * Address and secret of the operators' listener. The rest of config may be faulty: commands must
 * work while an operator mends it.
 * @throws ConfigError when `gateway.yaml` lacks the address, or the secret cannot be read
 */
export function opsAccess(folder: string, environment: Environment): OpsAccess {
  const faults: Fault[] = []
  const inputs = createInputs()
  const context = {
    environment: withEnvFile(folder, environment, inputs),
    inputs,
    faults,
    folder: resolve(folder)
  }
  const document = readDocument(resolve(folder, 'gateway.yaml'), 'gateway.yaml', context)
  // Presets do not set `ops`.
  const ops =
    document &&
    completeFile(gatewaySchema, { file: ownLayer(document), presets: [] }, context).value.ops
  const listen: unknown = ops?.listen
  const secret: unknown = ops?.secret
  if (typeof listen !== 'string') throw new ConfigError(faults)
  const secretFaults = faults.filter(({ path }) => path === 'ops.secret')
  if (secretFaults.length > 0) throw new ConfigError(secretFaults)
  return { listen, ...(typeof secret === 'string' && { secret }) }
}
