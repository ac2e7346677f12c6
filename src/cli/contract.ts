/** `contract`: learns a route's contract from responses or a TypeScript type, and checks responses. */
import type { JsonSchema } from '../json-schema/closed-schema.ts'
import { compileSchema } from '../json-schema/compile.ts'
import { loadConfig } from '../config/load/load.ts'
import type { Config } from '../config/schema/config.ts'
import { schemaFromType, TypeFault } from '../contract/from-type.ts'
import { learnSchema, longNumbers } from '../contract/learn.ts'
import { writeOutput } from './output.ts'
import { liveOptions, shapedResponses } from './upstream-responses.ts'
import { type Command, CommandError, type Invocation, UsageError } from './command.ts'

const maxSamples = 1000

export const contract: Command = {
  summary: 'learn a route’s contract from responses or a TypeScript type, check responses',
  usage: [
    'learn ROUTE --input FILE … [--shaped] [--output FILE]',
    'learn ROUTE --live [--samples N] [--output FILE]',
    'check ROUTE --input FILE … [--shaped] [--json]',
    'check ROUTE --live [--samples N] [--json]',
    'from-type FILE.ts TYPE [--project TSCONFIG] [--output FILE]'
  ],
  details: `
learn writes a JSON Schema of what the console gets. check lists how responses
differ from the contract of the config, and fails if the contract refuses one. Both
shape the upstream's responses as the route does: from files (- is standard input),
or requested with --live, without a session: add the upstream's credential by
--header. from-type reads a type of a console, such as API.NoticeIconItem of a
typings.d.ts.

Examples:
  console-gateway contract learn notices --live --samples 20 -o config/contracts/notices.schema.json
  console-gateway contract check notices --input answer.json
  console-gateway contract from-type typings.d.ts API.NoticeIconItem
Exit codes: 1 if check refuses a response.`,
  options: {
    input: {
      type: 'string',
      multiple: true,
      value: 'FILE',
      description: 'a response of the upstream; several are merged'
    },
    shaped: {
      type: 'boolean',
      description: 'the files are responses to the console, not of the upstream'
    },
    samples: {
      type: 'string',
      value: 'N',
      description: `requests of --live, 1 to ${maxSamples} (default: 1)`
    },
    ...liveOptions,
    project: { type: 'string', value: 'TSCONFIG', description: 'the tsconfig.json of the type' },
    output: {
      type: 'string',
      short: 'o',
      value: 'FILE',
      description: 'where the schema is written; standard output without it'
    }
  },
  run: async invocation => {
    const [what, name, type] = invocation.rest
    if (what === 'from-type' && name !== undefined && type !== undefined) {
      const { project } = invocation.values
      return write(
        await schemaFromType(name, type, typeof project === 'string' ? project : undefined).catch(
          plainly
        ),
        invocation
      )
    }
    if ((what !== 'learn' && what !== 'check') || name === undefined) {
      throw new UsageError('Name a subcommand: learn, check or from-type.')
    }
    const config = loadConfig(invocation.config, process.env)
    return what === 'learn' ? learn(config, name, invocation) : check(config, name, invocation)
  }
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
    process.stderr.write(`${problem} Look for "${longNumbers}"\n`)
  }
  return write(schema, invocation)
}

async function check(config: Config, name: string, invocation: Invocation): Promise<number> {
  const schema = config.contracts[name]
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
  if (invocation.json) process.stdout.write(`${JSON.stringify(checked, null, 2)}\n`)
  else {
    for (const [line, count] of counted) {
      process.stdout.write(
        `${line}${responses.length > 1 ? `  (in ${count} of ${responses.length})` : ''}\n`
      )
    }
    const kept = counted.size > 0 ? 'kept, except for the members above' : 'kept'
    process.stdout.write(refused > 0 ? `${refused} of ${responses.length} refused\n` : `${kept}\n`)
  }
  return refused > 0 ? 1 : 0
}

async function responsesOf(
  config: Config,
  name: string,
  invocation: Invocation
): Promise<unknown[]> {
  const { input, live, shaped, samples = '1' } = invocation.values
  // After `--input *.json`, the shell's other files follow as plain words.
  const files = [...(Array.isArray(input) ? input : []), ...invocation.rest.slice(2)]
  const times = Number(samples)
  if ((files.length === 0) === (live !== true)) {
    throw new UsageError('Name either --input or --live.')
  }
  if (!Number.isInteger(times) || times < 1 || times > maxSamples) {
    throw new UsageError(`--samples is a number from 1 to ${maxSamples}.`)
  }
  return shapedResponses(
    config,
    name,
    live === true ? { times, invocation: invocation } : { files, isShaped: shaped === true }
  )
}

function write(schema: JsonSchema, { values: { output } }: Invocation): number {
  writeOutput(output, `${JSON.stringify(schema, null, 2)}\n`)
  return 0
}

function plainly(error: unknown): never {
  throw error instanceof TypeFault ? new CommandError(error.message) : error
}
