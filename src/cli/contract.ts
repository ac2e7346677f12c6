/** `contract`: learns a route's contract from responses or a TypeScript type, and checks responses. */
import type { JsonSchema } from '../json-schema/closed-schema.ts'
import { compileSchema } from '../json-schema/compile.ts'
import { loadConfig } from '../config/load/load.ts'
import type { Config } from '../config/schema/config.ts'
import { ownMember } from '../config/schema/visit.ts'
import { schemaFromType, TypeFault } from '../contract/from-type.ts'
import { learnSchema, longNumbers } from '../contract/learn.ts'
import { jsonText, printText, writeOutput } from './output.ts'
import { shapedResponses } from './upstream-responses.ts'
import { CommandError, type Invocation, UsageError } from './command.ts'

const maxSamples = 1000

export async function contract(invocation: Invocation): Promise<number> {
  const [what, name = '', type = ''] = invocation.rest
  if (what === 'from-type') {
    const { project } = invocation.values
    return write(
      await schemaFromType(name, type, typeof project === 'string' ? project : undefined).catch(
        plainly
      ),
      invocation
    )
  }
  const config = loadConfig(invocation.config, invocation.io.env)
  return what === 'learn' ? learn(config, name, invocation) : check(config, name, invocation)
}

async function learn(config: Config, name: string, invocation: Invocation): Promise<number> {
  const responses = await responsesOf(config, name, invocation)
  const from = responses.length === 1 ? 'one response' : `${responses.length} responses`
  const schema: JsonSchema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    description: `The responses of the route ${name}, learned from ${from}.`,
    ...learnSchema(responses)
  }
  if (JSON.stringify(schema).includes(longNumbers)) {
    const problem = 'The responses have numbers that a console would round.'
    invocation.io.stderr.write(`${problem} Look for "${longNumbers}"\n`)
  }
  return write(schema, invocation)
}

async function check(config: Config, name: string, invocation: Invocation): Promise<number> {
  const schema = ownMember(config.contracts, name)
  if (schema === undefined) {
    throw new CommandError(
      `The route "${name}" has no contract. Routes with a contract: ${Object.keys(config.contracts).join(', ') || 'none'}.`
    )
  }
  const { deviations, refusal } = compileSchema(schema)
  const responses = await responsesOf(config, name, invocation)
  const checked = responses.map(response => ({
    deviations: deviations(response),
    refused: refusal(response) !== undefined
  }))
  const counted = new Map<string, number>()
  for (const { kind, path } of checked.flatMap(each => each.deviations)) {
    counted.set(`${kind.padEnd(8)} ${path}`, (counted.get(`${kind.padEnd(8)} ${path}`) ?? 0) + 1)
  }
  const refused = checked.filter(each => each.refused).length
  const { io } = invocation
  if (invocation.json) io.stdout.write(jsonText(checked))
  else {
    for (const [line, count] of counted) {
      printText(responses.length > 1 ? `${line}  (in ${count} of ${responses.length})` : line, io)
    }
    const kept = counted.size > 0 ? 'kept, except for the members above' : 'kept'
    printText(refused > 0 ? `${refused} of ${responses.length} refused` : kept, io)
  }
  return refused > 0 ? 1 : 0
}

async function responsesOf(
  config: Config,
  name: string,
  invocation: Invocation
): Promise<unknown[]> {
  const { input, live: isLive, shaped, samples = '1' } = invocation.values
  // After `--input *.json`, the shell's other files follow as plain words.
  const files = [...(Array.isArray(input) ? input : []), ...invocation.rest.slice(2)]
  const times = Number(samples)
  if (!Number.isInteger(times) || times < 1 || times > maxSamples) {
    throw new UsageError(`--samples is a number from 1 to ${maxSamples}.`)
  }
  return shapedResponses(
    config,
    name,
    isLive === true
      ? { times, invocation }
      : { files, isShaped: shaped === true, io: invocation.io }
  )
}

function write(schema: JsonSchema, { values: { output }, io }: Invocation): number {
  writeOutput(output, jsonText(schema), io)
  return 0
}

function plainly(error: unknown): never {
  throw error instanceof TypeFault ? new CommandError(error.message) : error
}
