/** The entry for other programs and for tests: a gateway within their process. */
import type { Environment } from './config/read/inputs.ts'
import { loadConfig } from './config/read/load.ts'
import { type Gateway, startGateway } from './process/gateway.ts'
import { createLogger } from './services/services.ts'

export { hashPassword } from './login/argon2.ts'
/** The codes of errors, with status and messages. */
export { errorKinds as errors } from './errors/errors.ts'
export type { Gateway } from './process/gateway.ts'

export interface GatewayOptions {
  /** The config folder; of several, a later one wins. */
  readonly config: string | readonly string[]
  /** The values of references in config (default: the environment of the process). */
  readonly env?: Environment
  /** Gets every line of the log, from the level debug on, in place of standard output. */
  readonly log?: (line: Readonly<Record<string, unknown>>) => void
}

/**
 * Starts a gateway, which the caller stops: it takes no signals. Examples and expectations of the
 * config are not tried.
 * @throws ConfigError for a faulty config; what `listen` throws where a listener cannot be opened
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const { config: folders, env = process.env, log } = options
  const config = loadConfig(folders, env)
  const logger =
    log === undefined
      ? createLogger(config.gateway.log)
      : createLogger(
          { level: 'debug', format: 'json' },
          { write: line => log(JSON.parse(line) as Record<string, unknown>) }
        )
  return await startGateway(config, logger, env)
}
