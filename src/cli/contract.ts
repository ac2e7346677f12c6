/** `contract`: learns a route's contract from answers, makes one of a TypeScript type, and holds answers against it. */
import type { JsonSchema } from '../json-schema/closed-schema.ts'
import { compileSchema } from '../json-schema/compile.ts'
import { loadConfig } from '../config/load/load.ts'
import type { Config } from '../config/schema/config.ts'
import { schemaFromType, TypeFault } from '../contract/from-type.ts'
import { learnSchema, longNumbers } from '../contract/learn.ts'
import { writeOutput } from './output.ts'
import { shapedAnswers } from './upstream-responses.ts'
import { type Command, CommandError, type Given, UsageError } from './command.ts'

const maxSamples = 1000

export const contract: Command = {
  summary: 'learn a route’s contract from answers, make one of a TypeScript type, check answers',
  usage: [
    'learn ROUTE --input FILE … [--shaped] [--output FILE]',
    'learn ROUTE --live [--samples N] [--output FILE]',
    'check ROUTE --input FILE … [--shaped] [--json]',
    'check ROUTE --live [--samples N] [--json]',
    'from-type FILE.ts TYPE [--project TSCONFIG] [--output FILE]'
  ],
  details: `
learn writes a JSON Schema of what the console gets; check says how answers differ
from the one that the config names, and fails where it refuses one. Both take the
upstream's answers and shape them as the route does: from files (- is standard
input), or asked for with --live, without a session: name what the upstream wants
to see in --header. from-type reads types as a console has them, such as
API.NoticeIconItem of a typings.d.ts.

Examples:
  console-gateway contract learn notices --live --samples 20 -o config/contracts/notices.schema.json
  console-gateway contract check notices --input answer.json
  console-gateway contract from-type typings.d.ts API.NoticeIconItem
Exit codes: 1 where check refuses an answer.`,
  options: {
    input: {
      type: 'string',
      multiple: true,
      value: 'FILE',
      description: 'an answer of the upstream; several are merged'
    },
    shaped: {
      type: 'boolean',
      description: 'the files hold what the console gets, not what the upstream answers'
    },
    live: { type: 'boolean', description: 'ask the upstream' },
    samples: {
      type: 'string',
      value: 'N',
      description: `how often, 1 to ${maxSamples} (default: 1)`
    },
    header: {
      type: 'string',
      value: 'FIELD',
      description: 'a header field for --live, such as "authorization: Bearer …"'
    },
    path: {
      type: 'string',
      value: 'PATH',
      description: 'the path at the upstream for --live, where the route has a *'
    },
    project: { type: 'string', value: 'TSCONFIG', description: 'the tsconfig.json of the type' },
    output: {
      type: 'string',
      short: 'o',
      value: 'FILE',
      description: 'where the schema is written; standard output without it'
    }
  },
  run: async given => {
    const [what, name, type] = given.rest
    if (what === 'from-type' && name !== undefined && type !== undefined) {
      const { project } = given.values
      return write(
        await schemaFromType(name, type, typeof project === 'string' ? project : undefined).catch(
          plainly
        ),
        given
      )
    }
    if ((what !== 'learn' && what !== 'check') || name === undefined) {
      throw new UsageError('Say what to do: learn, check or from-type.')
    }
    const config = loadConfig(given.config, process.env)
    return what === 'learn' ? learn(config, name, given) : check(config, name, given)
  }
}

async function learn(config: Config, name: string, given: Given): Promise<number> {
  const answers = await answersOf(config, name, given)
  const from = answers.length === 1 ? 'one answer' : `${answers.length} answers`
  const schema: JsonSchema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    description: `What the route ${name} gives, learned from ${from}.`,
    ...learnSchema(answers)
  }
  if (JSON.stringify(schema).includes(longNumbers)) {
    const found = 'The answers hold numbers that no console reads as they are.'
    process.stderr.write(`${found} Look for "${longNumbers}"\n`)
  }
  return write(schema, given)
}

async function check(config: Config, name: string, given: Given): Promise<number> {
  const schema = config.contracts[name]
  if (schema === undefined) {
    throw new CommandError(
      `The route "${name}" has no contract. Those that have one: ${Object.keys(config.contracts).join(', ') || 'none'}.`
    )
  }
  const { deviations, refusal } = compileSchema(schema)
  const answers = await answersOf(config, name, given)
  const found = answers.map(answer => ({
    deviations: deviations(answer),
    refused: refusal(answer) !== undefined
  }))
  const counted = new Map<string, number>()
  for (const { kind, path } of found.flatMap(each => each.deviations)) {
    counted.set(`${kind.padEnd(8)} ${path}`, (counted.get(`${kind.padEnd(8)} ${path}`) ?? 0) + 1)
  }
  const refused = found.filter(each => each.refused).length
  if (given.json) process.stdout.write(`${JSON.stringify(found, null, 2)}\n`)
  else {
    for (const [line, count] of counted) {
      process.stdout.write(
        `${line}${answers.length > 1 ? `  (in ${count} of ${answers.length})` : ''}\n`
      )
    }
    const kept = counted.size > 0 ? 'kept, but for what is new' : 'kept'
    process.stdout.write(refused > 0 ? `${refused} of ${answers.length} refused\n` : `${kept}\n`)
  }
  return refused > 0 ? 1 : 0
}

async function answersOf(config: Config, name: string, given: Given): Promise<unknown[]> {
  const { input, live, shaped, samples = '1' } = given.values
  // What a shell makes of *.json follows the option's one value.
  const files = [...(Array.isArray(input) ? input : []), ...given.rest.slice(2)]
  const times = Number(samples)
  if ((files.length === 0) === (live !== true)) {
    throw new UsageError('Name either --input or --live.')
  }
  if (!Number.isInteger(times) || times < 1 || times > maxSamples) {
    throw new UsageError(`--samples is a number from 1 to ${maxSamples}.`)
  }
  return shapedAnswers(
    config,
    name,
    live === true ? { times, given } : { files, isShaped: shaped === true }
  )
}

function write(schema: JsonSchema, { values: { output } }: Given): number {
  writeOutput(output, `${JSON.stringify(schema, null, 2)}\n`)
  return 0
}

function plainly(error: unknown): never {
  throw error instanceof TypeFault ? new CommandError(error.message) : error
}
