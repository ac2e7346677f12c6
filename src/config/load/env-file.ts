/** `.env` of a config folder: values for `${NAME}` that the environment does not have. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { Inputs } from './inputs.ts'
import type { Environment } from './references.ts'

/**
 * The environment, completed by the file where the folder has one. The environment wins.
 * @throws the system's error for a file that cannot be read
 */
export function withEnvFile(folder: string, environment: Environment, inputs: Inputs): Environment {
  const file = resolve(folder, '.env')
  if (!existsSync(file)) return environment
  return { ...parseEnv(inputs.read(file)), ...environment }
}
