/** The process: the command line and exit codes. */
import { parseArgs } from 'node:util'
import { type Command, CommandError, commonOptions as common, type Given, type Option, UsageError } from './commands/command.ts'
import { commands } from './commands/index.ts'
import { ConfigError } from './config/faults.ts'

const exitCodes = 'Exit codes: 0 done, 1 config is wrong or the command failed, 2 the command line is wrong.'

/** Runs one command. Sets the exit code; a command that serves keeps the process alive. */
export async function main (given: readonly string[]): Promise<void> {
  const { values: { help }, positionals: [word] } = parseArgs({ args: [...given], allowPositionals: true, strict: false, options: parsable(common) })
  if ((help === true && word === undefined) || word === 'help') return void process.stdout.write(usage())
  const name = word ?? 'start'
  const command: Command | undefined = Object.hasOwn(commands, name) ? commands[name as keyof typeof commands] : undefined
  if (command === undefined) return wrong(`There is no command "${name}".`, usage())
  if (help === true) return void process.stdout.write(usageOf(name, command))
  try {
    const { values: { config, json, help: _, ...values }, positionals } = parseArgs({ args: [...given], allowPositionals: true, options: parsable({ ...common, ...command.options }) })
    process.exitCode = await command.run({ config: typeof config === 'string' ? config : 'config', json: json === true, values: values as Given['values'], rest: positionals.slice(1) })
  } catch (error) {
    if (error instanceof UsageError || (error as { code?: unknown }).code?.toString().startsWith('ERR_PARSE_ARGS') === true) return wrong((error as Error).message, usageOf(name, command))
    if (!(error instanceof ConfigError || error instanceof CommandError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}

const parsable = (options: Readonly<Record<string, Option>>) => Object.fromEntries(Object.entries(options).map(([name, { type, short, multiple }]) => [name, { type, ...(short !== undefined && { short }), ...(multiple && { multiple }) }]))

function wrong (message: string, help: string): void {
  process.stderr.write(`${message === '' ? '' : `${message}\n\n`}${help}`)
  process.exitCode = 2
}

const usage = () => `Usage: console-gateway COMMAND [OPTIONS]

${Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(18)}${summary}`).join('\n')}

Options:
${optionLines(common)}

${exitCodes}
`

const usageOf = (name: string, { summary, usage: ways = [''], details, options = {} }: Command) => `console-gateway ${name}: ${summary}

${ways.map((way, index) => `${index === 0 ? 'Usage:' : '      '} console-gateway ${name}${way === '' ? '' : ` ${way}`}`).join('\n')}
${details === undefined ? '' : `\n${details.trim()}\n`}
Options:
${optionLines({ ...options, ...common })}

${exitCodes}
`

function optionLines (options: Readonly<Record<string, Option>>): string {
  const left = ([name, { short, value }]: [string, Option]) => `  ${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`
  const width = Math.max(...Object.entries(options).map(entry => left(entry).length)) + 2
  return Object.entries(options).map(entry => `${left(entry).padEnd(width)}${entry[1].description}`).join('\n')
}
