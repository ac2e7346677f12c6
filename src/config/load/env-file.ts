/** `.env` of a config folder: values for `${NAME}` that the environment does not have. */
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { ConfigError } from '../schema/faults.ts'
import { faultOfFile } from './document.ts'
import { type Inputs, NotUtf8Error } from './inputs.ts'
import type { Environment } from './references.ts'

/**
 * The environment, completed by the file where the folder has one. The environment wins.
 * @throws ConfigError for a file that cannot be read
 */
export function withEnvFile(folder: string, environment: Environment, inputs: Inputs): Environment {
  const file = resolve(folder, '.env')
  try {
    return { ...parseEnv(inputs.read(file)), ...environment }
  } catch (error) {
    if (error instanceof NotUtf8Error) {
      throw new ConfigError([faultOfFile(file, error.message, error.line)])
    }
    const { code, message } = error as NodeJS.ErrnoException
    // ENOTDIR: the folder is none, which the files that it has to have say.
    if (code === 'ENOENT' || code === 'ENOTDIR') return environment
    throw new ConfigError([faultOfFile(file, `the file cannot be read (${code ?? message})`)])
  }
}
