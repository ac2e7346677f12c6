/** Reads JSON that a command is given, as the gateway reads that of a back-end. */
import { readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { type GatewayError } from '../errors/errors.ts'
import { readJson } from '../json/body.ts'
import type { Json } from '../json/values.ts'
import { CommandError, type Io } from './command.ts'

/** A response in a file, by the gateway's own reader: it may begin with a byte order mark. */
export async function readInput(file: string, { stdin }: Pick<Io, 'stdin'>): Promise<Json> {
  const place = file === '-' ? 'Standard input' : file
  let bytes: Buffer
  try {
    bytes = file === '-' ? await buffer(stdin) : readFileSync(file)
  } catch (error) {
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    throw new CommandError(`${place} cannot be read (${code}).`)
  }
  try {
    return readJson(bytes, {}, Infinity)
  } catch (error) {
    const { cause } = error as GatewayError
    throw new CommandError(`${place}: ${cause instanceof Error ? cause.message : String(error)}.`)
  }
}
