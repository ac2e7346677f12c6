/** How commands reach the operators' listener of a gateway. */
import { resolve } from 'node:path'
import { ConfigError, type Fault } from '../schema/faults.ts'
import { gatewaySchema, type GatewayConfig } from '../schema/gateway.ts'
import { createInputs } from './inputs.ts'
import { readFile } from './read-file.ts'
import type { Environment } from './references.ts'

type OpsAccess = Pick<GatewayConfig['ops'], 'listen' | 'secret'>

/**
 * How the operators' listener of a gateway with this config is reached. Nothing else has to be
 * sound: this is for mending it.
 * @throws ConfigError when `gateway.yaml` does not say it
 */
export function opsAccess(folder: string, environment: Environment): OpsAccess {
  const faults: Fault[] = []
  const reading = { environment, inputs: createInputs(), faults }
  const ops = readFile(resolve(folder), 'gateway.yaml', gatewaySchema, reading)?.value.ops
  const listen: unknown = ops?.listen
  const secret: unknown = ops?.secret
  if (typeof listen !== 'string') throw new ConfigError(faults)
  const secretFaults = faults.filter(({ path }) => path === 'ops.secret')
  if (secretFaults.length > 0) throw new ConfigError(secretFaults)
  return { listen, ...(typeof secret === 'string' && { secret }) }
}
