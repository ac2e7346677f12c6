/** Address, secret and certificate of a gateway's operators' listener, for commands. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { ConfigError } from '../schema/faults.ts'
import { gatewaySchema, type GatewayConfig } from '../schema/gateway.ts'
import { readDocument } from './document.ts'
import { ownLayer } from './layers.ts'
import { completeFile, contextOfFolder } from './read-file.ts'
import type { Environment } from './references.ts'

interface OpsAccess extends Pick<GatewayConfig['ops'], 'listen' | 'secret'> {
  /** The certificate of `ops.tls` (PEM); undefined where the listener speaks plain http. */
  readonly certificate?: Buffer
}

/**
 * Address and secret of the operators' listener. The rest of config may be faulty: commands must
 * work while an operator mends it.
 * @throws ConfigError when `gateway.yaml` lacks the address, or the secret cannot be read
 */
export function opsAccess(folder: string, environment: Environment): OpsAccess {
  const context = contextOfFolder(folder, environment)
  const { faults } = context
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
  const certificate: unknown = ops?.tls?.certificate
  return {
    listen,
    ...(typeof secret === 'string' && { secret }),
    ...(typeof certificate === 'string' && { certificate: readPem(resolve(folder, certificate)) })
  }
}

/** @throws ConfigError when it is no certificate */
function readPem(file: string): Buffer {
  try {
    const text = readFileSync(file)
    // Throws for another content.
    createSecureContext({ ca: text, cert: text })
    return text
  } catch (error) {
    const { code = 'unreadable' } = error as NodeJS.ErrnoException
    throw new ConfigError([
      {
        file: 'gateway.yaml',
        line: 0,
        path: 'ops.tls.certificate',
        message: `${file} cannot be read as a certificate (${code})`,
        severity: 'fault'
      }
    ])
  }
}
