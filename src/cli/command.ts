/** The types of a command, and the options that commands share. */
import type { Readable, Writable } from 'node:stream'

export type Input = Readable & { readonly isTTY?: boolean }
export type Output = Writable & { readonly isTTY?: boolean; columns?: number }

/** All that a command but `start` has of its process, so that it can run within another program. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
}

export interface Option {
  readonly type: 'boolean' | 'string'
  readonly short?: string
  /** Whether it may be repeated; its value is a list then. */
  readonly multiple?: true
  /** The placeholder of the value in the help, such as `FILE`. */
  readonly value?: string
  readonly description: string
}

export type Options = Readonly<Record<string, Option>>

/** The address of a running gateway. */
export interface GatewayAddress {
  /** The Unix socket of a gateway on this machine. */
  readonly socket?: string
  /** `--url`: a gateway elsewhere. */
  readonly url?: string | undefined
  readonly tokenFile?: string | undefined
  /** Certificates that its own is checked against, instead of the system's. */
  readonly caFile?: string | undefined
  /** The token may be in its environment. */
  readonly io: Pick<Io, 'env' | 'stderr'>
}

export interface Invocation {
  /** The config folder. */
  readonly config: string
  /** The gateway that is asked, for commands with `asksGateway`. */
  readonly gateway: GatewayAddress
  /** Whether gateways on this machine are asked, each in its turn. */
  readonly asksLocally: boolean
  /** `--json`: print for programs. */
  readonly json: boolean
  /** The command's own options. */
  readonly values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
  /** The words that are not options, without the command's name. */
  readonly rest: readonly string[]
  readonly io: Io
}

/** One way to call a command: a line of its usage, and what completion offers. */
export interface Way {
  /**
   * The words after the command's name, such as `close USER [SESSION-ID]`: values begin with a
   * capital, words in brackets may be left out, and a last word with … may be repeated.
   */
  readonly words?: string
  /** Options that it must have. */
  readonly needs?: readonly string[]
  /** Options that it may have. Any other option of the command is refused. */
  readonly takes?: readonly string[]
  /** It asks no gateway, though other ways of its command do: it takes no `--url`. */
  readonly isLocal?: true
}

export interface Command {
  /** One line for the list of commands. */
  readonly summary: string
  /** All ways to call it; without them it takes no words and no options of its own. */
  readonly ways?: readonly Way[]
  /** More text of `--help`. */
  readonly details?: string
  /** The options that its ways name; `json` and the common ones are known. */
  readonly options?: Options
  /** Whether it asks a running gateway: it takes `--url` then. */
  readonly asksGateway?: boolean
  /** The command refuses words that fit none of its ways by itself. */
  readonly checksWords?: boolean
  /**
   * Imports its implementation, so that other commands need not load it.
   * @returns the exit code
   */
  readonly run: (invocation: Invocation) => Promise<number>
}

/** The config folder where `--config` names none. */
export const defaultFolder = 'config'

/** The options of every command. */
export const commonOptions: Options = {
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

/** The option that names the environment variable with a password. */
export const passwordEnvOption: Option = {
  type: 'string',
  value: 'VARIABLE',
  description: 'the environment variable with the password'
}

export const jsonOption: Option = { type: 'boolean', description: 'print for programs' }

export const gatewayOptions: Options = {
  'url': {
    type: 'string',
    value: 'URL',
    description: 'ask the gateway at this operators’ address; its token is in CONSOLE_GATEWAY_TOKEN'
  },
  'token-file': { type: 'string', value: 'FILE', description: 'with --url: a file with the token' },
  'ca': { type: 'string', value: 'FILE', description: 'with --url: certificates to trust (PEM)' }
}

/** Thrown for a wrong command line: the command's usage is shown, and the exit code is 2. */
export class UsageError extends Error {}

/** Thrown by a command that failed, with a message for the operator; the exit code is 1. */
export class CommandError extends Error {}
