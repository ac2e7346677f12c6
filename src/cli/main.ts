/** The process: the command line and exit codes. */
import { parseArgs } from 'node:util'
import { guardOutput } from './output.ts'
import { type Command, CommandError, commonOptions, type Options, UsageError } from './command.ts'
import { commands } from './commands.ts'
import { parsable, parseInvocation } from './invocation.ts'
import { usageOf, usageOfProgram } from './usage.ts'
import { optionsOf } from './ways.ts'
import { ConfigError, nearest } from '../config/schema/faults.ts'
import { printableLines } from '../observability/unprintable.ts'
import { version } from '../process/status.ts'

const programOptions: Options = {
  ...commonOptions,
  version: { type: 'boolean', description: 'the version of the gateway and of Node' }
}

/** An option before the name of its command, or without any name, keeps its value. */
const optionsOfAll: Options = Object.assign(
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
    return void process.stdout.write(usageOfProgram(commands, programOptions))
  }
  const name = word ?? 'start'
  const command = commandOf(name)
  if (command === undefined) {
    return failUsage(
      `There is no command "${name}".${nearest(name, Object.keys(commands))}`,
      usageOfProgram(commands, programOptions)
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
    process.exitCode = await command.run(parseInvocation(name, command, words))
  } catch (error) {
    const { code, message } = error as { code?: unknown; message: string }
    const isUsage = error instanceof UsageError || String(code).startsWith('ERR_PARSE_ARGS')
    if (isUsage) return failUsage(message, usageOf(name, command))
    if (!(error instanceof ConfigError || error instanceof CommandError)) throw error
    process.stderr.write(`${printableLines(message)}\n`)
    process.exitCode = 1
  }
}

function failUsage(message: string, help: string): void {
  process.stderr.write(`${message === '' ? '' : `${printableLines(message)}\n\n`}${help}`)
  process.exitCode = 2
}
