/** The types of a command, and the options that commands share. */

export interface Option {
  readonly type: 'boolean' | 'string'
  readonly short?: string
  /** Whether it may be repeated; its value is a list then. */
  readonly multiple?: true
  /** The placeholder of the value in the help, such as `FILE`. */
  readonly value?: string
  readonly description: string
}

/** The address of a running gateway. */
export interface GatewayAddress {
  /** The config folder, with its address and secret. */
  readonly folder: string
  /** `--url`: a gateway elsewhere, instead of the folder's. */
  readonly url?: string | undefined
  readonly tokenFile?: string | undefined
  /** Certificates that its own is checked against, instead of the system's. */
  readonly caFile?: string | undefined
}

export interface Invocation {
  /** The config folder. */
  readonly config: string
  /** The gateway that is asked, for commands with `asksGateway`. */
  readonly gateway: GatewayAddress
  /** `--json`: print for programs. */
  readonly json: boolean
  /** The command's own options. */
  readonly values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
  /** The words that are not options, without the command's name. */
  readonly rest: readonly string[]
}

export interface Command {
  /** One line for the list of commands. */
  readonly summary: string
  /** The words after the name: one line for each way to call it, such as `list USER-ID`. */
  readonly usage?: readonly string[]
  /** More text of `--help`. */
  readonly details?: string
  readonly options?: Readonly<Record<string, Option>>
  /** Whether it asks a running gateway: it takes `--url` then. */
  readonly asksGateway?: boolean
  /** The command checks the words after its name itself, whatever its usage says. */
  readonly checksWords?: boolean
  /** @returns the exit code */
  readonly run: (invocation: Invocation) => Promise<number>
}

/** The options of every command. */
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
    description: 'this text; after a command’s name, the help of that command'
  }
}

const jsonOption: Option = { type: 'boolean', description: 'print for programs' }

const gatewayOptions: Readonly<Record<string, Option>> = {
  'url': {
    type: 'string',
    value: 'URL',
    description: 'ask the gateway at this operators’ address; its token is in CONSOLE_GATEWAY_TOKEN'
  },
  'token-file': { type: 'string', value: 'FILE', description: 'with --url: a file with the token' },
  'ca': { type: 'string', value: 'FILE', description: 'with --url: certificates to trust (PEM)' }
}

/** All options of a command: its own, `--json` if its usage names it, and the common ones. */
export function optionsOf({
  usage = [],
  options = {},
  asksGateway = false
}: Command): Readonly<Record<string, Option>> {
  const printsJson = usage.some(way => way.includes('--json'))
  return {
    ...options,
    ...(asksGateway && gatewayOptions),
    ...(printsJson && { json: jsonOption }),
    ...commonOptions
  }
}

/** Whether words may follow a command's name, such as `list USER`: its usage names them. */
export function takesWords({ usage = [], checksWords = false }: Command): boolean {
  return checksWords || usage.some(way => way.replaceAll(/\[-[^\]]*\]…?/g, '').trim() !== '')
}

/** Thrown for a wrong command line: the command's usage is shown, and the exit code is 2. */
export class UsageError extends Error {}

/** Thrown by a command that failed, with a message for the operator; the exit code is 1. */
export class CommandError extends Error {}
