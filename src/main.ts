/** The process: the command line, signals, exit codes. */
import { parseArgs } from 'node:util'
import { commands } from './commands/index.ts'

const usage = () => `Usage: console-gateway COMMAND [OPTIONS]

${Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(18)}${summary}`).join('\n')}

Options:
  -c, --config DIR    the config folder (default: config)
  --json              print for programs, where a command says so
  -h, --help          this text

Exit codes: 0 done, 1 config is wrong or the command failed, 2 the command line is wrong.
`

/** Runs one command. Sets the exit code; a command that serves keeps the process alive. */
export async function main (given: readonly string[]): Promise<void> {
  let parsed
  try {
    parsed = parseArgs({
      args: [...given],
      allowPositionals: true,
      options: { config: { type: 'string', short: 'c', default: 'config' }, check: { type: 'boolean', default: false }, everyone: { type: 'boolean', default: false }, json: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h', default: false } }
    })
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage()}`)
    process.exitCode = 2
    return
  }
  const { values, positionals: [name = 'start', ...rest] } = parsed
  if (values.help || name === 'help') return void process.stdout.write(usage())
  const command = Object.hasOwn(commands, name) ? commands[name as keyof typeof commands] : undefined
  if (command === undefined) {
    process.stderr.write(`There is no command "${name}".\n\n${usage()}`)
    process.exitCode = 2
    return
  }
  process.exitCode = await command.run({ config: values.config, check: values.check, everyone: values.everyone, json: values.json, rest })
}
