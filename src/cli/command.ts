/** What a command of the command line is. */

export interface Option {
  readonly type: 'boolean' | 'string'
  readonly short?: string
  /** Whether it may be given more than once; its values are a list then. */
  readonly multiple?: true
  /** What stands for the value in the help, such as `FILE`. */
  readonly value?: string
  readonly description: string
}

export interface Given {
  /** The config folder. */
  readonly config: string
  /** `--json`: print for programs. */
  readonly json: boolean
  /** The command's own options. */
  readonly values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
  /** The words that are no options, without the command's name. */
  readonly rest: readonly string[]
}

export interface Command {
  /** One line for the list of commands. */
  readonly summary: string
  /** What may follow the name: one line for each way to call it, such as `list USER-ID`. */
  readonly usage?: readonly string[]
  /** More that `--help` says. */
  readonly details?: string
  readonly options?: Readonly<Record<string, Option>>
  /** It looks at words that follow its name itself, whatever its usage says. */
  readonly checksWords?: boolean
  /** @returns the exit code */
  readonly run: (given: Given) => Promise<number>
}

/** What every command takes. */
export const commonOptions: Readonly<Record<string, Option>> = {
  config: {
    type: 'string',
    short: 'c',
    value: 'DIR',
    description: 'the config folder (default: config)'
  },
  help: {
    type: 'boolean',
    short: 'h',
    description: 'this text; behind a command’s name, what that command does'
  }
}

const jsonOption: Option = { type: 'boolean', description: 'print for programs' }

/** All options of a command: its own, `--json` where its usage names it, and those that all take. */
export function optionsOf({ usage = [], options = {} }: Command): Readonly<Record<string, Option>> {
  const printsJson = usage.some(way => way.includes('--json'))
  return { ...options, ...(printsJson && { json: jsonOption }), ...commonOptions }
}

/** Whether words may follow a command's name, such as `list USER`. Its usage says it. */
export function takesWords({ usage = [], checksWords = false }: Command): boolean {
  return checksWords || usage.some(way => way.replaceAll(/\[-[^\]]*\]…?/g, '').trim() !== '')
}

/** Thrown by a command whose words make no sense: its usage is shown, and the exit code is 2. */
export class UsageError extends Error {}

/** Thrown by a command that failed, with what to tell the operator; the exit code is 1. */
export class CommandError extends Error {}
