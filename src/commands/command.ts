/** What a command of the command line is. */

export interface CommandOptions {
  /** The config folder. */
  readonly config: string
  /** `--check`: only say whether something would change. */
  readonly check: boolean
  /** `--everyone`: all sessions of all users. */
  readonly everyone: boolean
  /** `--json`: print for programs. */
  readonly json: boolean
  readonly rest: readonly string[]
}

export interface Command {
  /** One line for `--help`. */
  readonly summary: string
  /** @returns the exit code */
  readonly run: (options: CommandOptions) => Promise<number>
}
