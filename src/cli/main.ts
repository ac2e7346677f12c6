/** The command line: finds the command, runs it, and says what is wrong with the words. */
import { parseArgs } from 'node:util'
import packageJson from '../../package.json' with { type: 'json' }
import {
  type Command,
  CommandError,
  commonOptions,
  type Io,
  type Options,
  UsageError
} from './command.ts'
import { commands } from './commands.ts'
import { parsable, parseInvocation } from './invocation.ts'
import { usageOf, usageOfProgram } from './usage.ts'
import { optionsOf } from './ways.ts'
import { ConfigError, nearest } from '../config/schema/faults.ts'
import { printableLines } from '../observability/unprintable.ts'

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

/** Runs one command, which `start` outlives. @returns the exit code */
export async function runCli(words: readonly string[], io: Io): Promise<number> {
  const {
    values: { help, version: asksVersion },
    positionals: [word]
  } = parseArgs({
    args: [...words],
    allowPositionals: true,
    strict: false,
    options: parsable(optionsOfAll)
  })
  const print = (text: string) => {
    io.stdout.write(text)
    return 0
  }
  if (word === undefined && asksVersion === true) {
    return print(`console-gateway ${packageJson.version} (Node ${process.version})\n`)
  }
  if ((help === true && word === undefined) || word === 'help') {
    return print(usageOfProgram(commands, programOptions))
  }
  const name = word ?? 'start'
  const command = commandOf(name)
  if (command === undefined) {
    return failUsage(
      `There is no command "${name}".${nearest(name, Object.keys(commands))}`,
      usageOfProgram(commands, programOptions),
      io
    )
  }
  if (help === true) return print(usageOf(name, command))
  return await run(name, command, words, io)
}

function commandOf(name: string): Command | undefined {
  return Object.hasOwn(commands, name) ? commands[name as keyof typeof commands] : undefined
}

async function run(
  name: string,
  command: Command,
  words: readonly string[],
  io: Io
): Promise<number> {
  const guarded = async (work: () => Promise<number>): Promise<number> => {
    try {
      return await work()
    } catch (error) {
      return failWith(error, usageOf(name, command), io)
    }
  }
  return await guarded(async () => {
    const invocation = parseInvocation(name, command, words, io)
    if (!invocation.asksLocally) return await command.run(invocation)
    const { runAtEach } = await import('./local-gateways.ts')
    return await runAtEach(invocation, each => guarded(() => command.run(each)))
  })
}

function failWith(error: unknown, help: string, io: Io): number {
  const { code, message } = error as { code?: unknown; message: string }
  const isUsage = error instanceof UsageError || String(code).startsWith('ERR_PARSE_ARGS')
  if (isUsage) return failUsage(message, help, io)
  if (!(error instanceof ConfigError || error instanceof CommandError)) throw error
  io.stderr.write(`${printableLines(message)}\n`)
  return 1
}

function failUsage(message: string, help: string, { stderr }: Io): number {
  stderr.write(`${message === '' ? '' : `${printableLines(message)}\n\n`}${help}`)
  return 2
}
