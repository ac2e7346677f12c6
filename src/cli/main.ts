/** The process: the command line and exit codes. */
import { parseArgs } from 'node:util'
import { guardOutput } from './output.ts'
import {
  type Command,
  CommandError,
  commonOptions,
  type GatewayAddress,
  type Invocation,
  type Option,
  optionsOf,
  takesWords,
  UsageError
} from './command.ts'
import { commands } from './commands.ts'
import { ConfigError, nearest } from '../config/schema/faults.ts'
import { version } from '../process/status.ts'

const exitCodes =
  'Exit codes: 0 done, 1 faulty config or failed command, 2 wrong command line, ' +
  '3 done, with findings.'

const programOptions: Readonly<Record<string, Option>> = {
  ...commonOptions,
  version: { type: 'boolean', description: 'the version of the gateway and of Node' }
}

/** An option before the name of its command, or without any name, keeps its value. */
const optionsOfAll: Readonly<Record<string, Option>> = Object.assign(
  {},
  ...Object.values(commands).map(optionsOf),
  programOptions
)

/** Runs one command. Sets the exit code; a command that serves keeps the process alive. */
export async function main(words: readonly string[]): Promise<void> {
  guardOutput()
  const {
    values: { help, version: asksVersion },
    positionals: [word]
  } = parseArgs({
    args: [...words],
    allowPositionals: true,
    strict: false,
    options: parsable(optionsOfAll)
  })
  if (word === undefined && asksVersion === true) {
    return void process.stdout.write(`console-gateway ${version} (Node ${process.version})\n`)
  }
  if ((help === true && word === undefined) || word === 'help') {
    return void process.stdout.write(usage())
  }
  const name = word ?? 'start'
  const command = commandOf(name)
  if (command === undefined) {
    return failUsage(
      `There is no command "${name}".${nearest(name, Object.keys(commands))}`,
      usage()
    )
  }
  if (help === true) return void process.stdout.write(usageOf(name, command))
  await run(name, command, words)
}

function commandOf(name: string): Command | undefined {
  return Object.hasOwn(commands, name) ? commands[name as keyof typeof commands] : undefined
}

async function run(name: string, command: Command, words: readonly string[]): Promise<void> {
  try {
    process.exitCode = await command.run(parseInvocation(command, words))
  } catch (error) {
    const { code, message } = error as { code?: unknown; message: string }
    const isUsage = error instanceof UsageError || String(code).startsWith('ERR_PARSE_ARGS')
    if (isUsage) return failUsage(message, usageOf(name, command))
    if (!(error instanceof ConfigError || error instanceof CommandError)) throw error
    process.stderr.write(`${message}\n`)
    process.exitCode = 1
  }
}

/** @throws UsageError for a word that the command does not take, which it would ignore */
function parseInvocation(command: Command, words: readonly string[]): Invocation {
  const options = optionsOf(command)
  const { values, positionals, tokens } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: parsable(options),
    tokens: true
  })
  refuseSecondValues(tokens, options)
  const { config, json, help: _help, ...otherValues } = values
  const [, ...rest] = positionals
  if (rest[0] !== undefined && !takesWords(command)) {
    throw new UsageError(
      `Not understood: "${rest[0]}". If that is the config folder, write --config ${rest[0]}.`
    )
  }
  const folder = typeof config === 'string' ? config : 'config'
  return {
    config: folder,
    gateway: gatewayOf(folder, otherValues),
    json: json === true,
    values: otherValues as Invocation['values'],
    rest
  }
}

/** @throws UsageError for an option with two values of which parseArgs would take the last */
function refuseSecondValues(
  tokens: ReadonlyArray<{
    readonly kind: string
    readonly name?: string
    readonly value?: unknown
  }>,
  options: Readonly<Record<string, Option>>
): void {
  const values = new Map<string, unknown>()
  for (const { kind, name, value } of tokens) {
    if (kind !== 'option' || name === undefined || options[name]?.multiple) continue
    if (values.has(name) && values.get(name) !== value) {
      throw new UsageError(`--${name} takes one value, but it was given two.`)
    }
    values.set(name, value)
  }
}

function gatewayOf(folder: string, options: Readonly<Record<string, unknown>>): GatewayAddress {
  const textOf = (name: string) => {
    const value = options[name]
    return typeof value === 'string' ? value : undefined
  }
  const address = {
    folder,
    url: textOf('url'),
    tokenFile: textOf('token-file'),
    caFile: textOf('ca')
  }
  if (address.url === undefined && (address.tokenFile ?? address.caFile) !== undefined) {
    throw new UsageError('--token-file and --ca go with --url.')
  }
  return address
}

type ParsableOption = Pick<Option, 'type' | 'short' | 'multiple'>

function parsable(options: Readonly<Record<string, Option>>): Record<string, ParsableOption> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short !== undefined && { short }), ...(multiple && { multiple }) }
    ])
  )
}

function failUsage(message: string, help: string): void {
  process.stderr.write(`${message === '' ? '' : `${message}\n\n`}${help}`)
  process.exitCode = 2
}

function usage() {
  return `Usage: console-gateway COMMAND [OPTIONS]

${Object.entries(commands)
  .map(([name, { summary }]) => `  ${name.padEnd(18)}${summary}`)
  .join('\n')}

Options:
${optionLines(programOptions)}

${exitCodes}
`
}

function usageOf(name: string, command: Command): string {
  const { summary, usage: ways = [''], details } = command
  const lines = ways.map((way, index) => {
    return `${index === 0 ? 'Usage:' : '      '} console-gateway ${name}${way === '' ? '' : ` ${way}`}`
  })
  return `console-gateway ${name}: ${summary}

${lines.join('\n')}
${details === undefined ? '' : `\n${details.trim()}\n`}
Options:
${optionLines(optionsOf(command))}

${exitCodes}
`
}

function optionLines(options: Readonly<Record<string, Option>>): string {
  const left = ([name, { short, value }]: [string, Option]) => {
    return `  ${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`
  }
  const width = Math.max(...Object.entries(options).map(entry => left(entry).length)) + 2
  return Object.entries(options)
    .map(entry => `${left(entry).padEnd(width)}${entry[1].description}`)
    .join('\n')
}
