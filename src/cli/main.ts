import { CommanderError } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { adopt } from '../observability/emitters.ts'
import { printableLines } from '../observability/unprintable.ts'
import { CliCommand, type Io } from './command.ts'
import { addDailyCommands } from './commands/daily.ts'
import { addExpertCommands } from './commands/expert.ts'
import { addSetupCommands } from './commands/setup.ts'

const version = `console-gateway ${packageJson.version} (Node ${process.version})`

const exitCodes = `
Exit codes: 0 done, 1 faulty config or failed command, 2 wrong command line,
3 done, with findings.`

const maxColumns = 100

/** Without its value, which may be a secret, as in --password=… and -p…. */
const unknownOption = /(?<=unknown option ')(--[^=]*|-[^-]).*(?=')/s

export function createProgram(run: { readonly io: Io; exitCode: number }): CliCommand {
  const { stdout, stderr } = run.io
  const program = new CliCommand(run, 'console-gateway')
    .description('The gateway between an administration console and its back-ends.')
    .usage('COMMAND [OPTIONS]')
    .repeatable('-c, --config <dir>', 'the config folder (default: config); a later one wins')
    .version(version, '--version', 'the version of the gateway and of Node')
    .addHelpText('afterAll', exitCodes)
    .exitOverride()
    .showHelpAfterError()
    .configureHelp({ showGlobalOptions: true, subcommandTerm: command => command.name() })
    .configureOutput({
      writeOut: text => void stdout.write(text),
      writeErr: text => void stderr.write(text),
      outputError: (text, write) => write(printableLines(text.replace(unknownOption, '$1'))),
      getOutHelpWidth: () => maxColumns,
      getErrHelpWidth: () => maxColumns
    })
  addDailyCommands(program.commandsGroup('Daily:').helpCommand(true))
  addSetupCommands(program.commandsGroup('Set-up:'))
  addExpertCommands(program.commandsGroup('Expert:'))
  return program
}

export async function runCli(words: readonly string[], io: Io): Promise<number> {
  const run = { io, exitCode: 0 }
  try {
    await createProgram(run).parseAsync(words, { from: 'user' })
    return run.exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return error.exitCode === 0 ? 0 : 2
  }
}

export async function main(words: readonly string[]): Promise<void> {
  guardOutput()
  process.exitCode = await runCli(words, process)
}

/** The exit code that shells show for a program ended by SIGPIPE. */
const brokenPipeExit = 141

/** A reader that closes early (`| head`) ends the command silently; a full disk prints one line. */
function guardOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    adopt(stream, error => {
      const { code = 'unknown reason' } = error as NodeJS.ErrnoException
      if (code === 'EPIPE') process.exit(brokenPipeExit)
      if (stream === process.stdout) {
        process.stderr.write(`The output could not be written (${code}).\n`)
      }
      process.exit(1)
    })
  }
}
