import type { Readable, Writable } from 'node:stream'
import { Command, type CommandOptions } from 'commander'
import { ConfigError, nearest } from '../config/schema/faults.ts'
import { connectionBound } from '../config/schema/header-names.ts'
import { escapeInJson, printableLines } from '../observability/unprintable.ts'

export type Input = Readable & { readonly isTTY?: boolean }
export type Output = Writable & { readonly isTTY?: boolean; columns?: number }

/** All that a command but `start` has of its process, so that it can run within another program. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
}

export interface Connection {
  readonly base: string
  /** Of a gateway on this machine, which needs no token. */
  readonly socketPath?: string
  readonly id?: string
  readonly token?: string
}

export type Values = Readonly<Record<string, unknown>>

export interface Invocation<V = Values> {
  readonly config: string
  readonly configs: readonly string[]
  readonly gateway: Connection
  readonly values: V
  readonly rest: readonly string[]
  readonly io: Io
}

export type Columns<Row> = Readonly<Record<string, (row: Row) => string>>

/** @param none the text in place of a table without rows */
export function tableOf<Row>(rows: readonly Row[], columns: Columns<Row>, none = ''): Shown {
  const cells = rows.map(row => Object.values(columns).map(cell => cell(row)))
  return rows.length === 0 ? { text: none } : { table: [Object.keys(columns), ...cells] }
}

export type Asked = readonly [
  path: string,
  fields?: { readonly query?: object; readonly body?: object }
]

/** A command prints these in this order, or `json` alone with `--json`. */
export interface Shown {
  readonly json?: unknown
  /** Text that is escaped already, and may have colours. */
  readonly painted?: string
  readonly table?: ReadonlyArray<readonly string[]>
  readonly text?: string
  readonly note?: string
  /** Nothing was done: it is said on standard error, and the exit code is 3. */
  readonly isRefusal?: boolean
  readonly code?: number
}

/** JSON for programs, and for terminals that would obey what clients put into names and paths. */
export function jsonText(value: unknown): string {
  return `${escapeInJson(JSON.stringify(value, null, 2))}\n`
}

/** @returns the exit code */
async function print(shown: Shown, json: boolean | undefined, io: Io): Promise<number> {
  const { painted = '', table, text, note, isRefusal = false } = shown
  const stream = isRefusal ? io.stderr : io.stdout
  // Tables need a package, which the other commands do not load.
  const rows = table && (await import('./output.ts')).tableText(table, stream)
  const lines = text === undefined ? '' : printableLines(`${text}\n`)
  if (json && shown.json) io.stdout.write(jsonText(shown.json))
  else stream.write(painted + (rows ?? '') + lines)
  if (note !== undefined) io.stderr.write(`${note}\n`)
  return shown.code ?? (isRefusal ? 3 : 0)
}

export const defaultFolder = 'config'

/** Thrown for a wrong command line: the command's usage is shown, and the exit code is 2. */
export class UsageError extends Error {}

/** Thrown by a command that failed, with a message for the operator; the exit code is 1. */
export class CommandError extends Error {}

const field = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\x20-\x7e]*[\x21-\x7e])[\t ]*$/

/** A text may be a secret, so no message repeats it. @throws UsageError */
export function headersOf(texts: readonly string[]): Readonly<Record<string, string>> {
  const headers = new Map<string, string>()
  for (const text of texts) {
    const [, written = '', value = ''] = field.exec(text) ?? []
    const name = written.toLowerCase()
    if (name === '') {
      throw new UsageError('--header takes a name and printable ASCII, such as "tenant-id: 1".')
    }
    if (headers.has(name)) throw new UsageError(`--header: "${name}" has two values.`)
    if (connectionBound.has(name) || name === 'content-length') {
      throw new UsageError(`--header: "${name}" belongs to the connection, and cannot be chosen.`)
    }
    headers.set(name, value)
  }
  return Object.fromEntries(headers)
}

export function fitting(schema: object): (text: string) => string | undefined {
  const { pattern = '', expected } = schema as { readonly pattern?: string; expected?: string }
  return text => (new RegExp(pattern).test(text) ? undefined : expected)
}

type Globals = { config?: readonly string[]; json?: boolean; url?: string }

interface Run {
  readonly io: Io
  exitCode: number
}

interface Asking<Answer, V> {
  readonly ask: (invocation: Invocation<V>) => Asked | Promise<Asked>
  readonly show: (answer: Answer, invocation: Invocation<V>) => Shown | Promise<Shown>
}

type Load<V> = () => Promise<(invocation: Invocation<V>) => Promise<Shown | void>>

type IsAsked = (words: readonly string[]) => boolean

export class CliCommand extends Command {
  readonly #run: Run
  #isAsked: IsAsked = () => false
  #asksOne = false

  constructor(run: Run, name?: string) {
    super(name)
    this.#run = run
    // Surplus words are refused here, since a message of commander would repeat a password.
    this.allowExcessArguments()
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(this.#run, name)
  }

  subcommand(words: string, description: string, options?: CommandOptions): CliCommand {
    return this.command(words, options).description(description)
  }

  repeatable(flags: string, description: string): this {
    const all = (value: string, former: readonly string[] = []) => [...former, value]
    return this.option(flags, `${description}; may be repeated`, all)
  }

  details(text: string): this {
    return this.addHelpText('after', `\n${text.trim()}`)
  }

  examples(...lines: readonly string[]): this {
    return this.addHelpText('after', ['\nExamples:', ...lines].join('\n  '))
  }

  json(): this {
    return this.option('--json', 'print for programs')
  }

  /** @param load imports the implementation, so that other commands need not load it */
  runs<V>(load: Load<V>): this {
    return this.action(async () => {
      this.#refuseSurplusWords()
      this.#run.exitCode = await this.#guarded(async () => await this.#runEach(load))
    })
  }

  /** It is run for each gateway on this machine, or the one of `--url`. */
  asksGateways(isAsked: IsAsked = () => true): this {
    this.#isAsked = isAsked
    return this.json().option('--url <url>', 'ask this address, with CONSOLE_GATEWAY_TOKEN')
  }

  /** Its subcommands ask one of several gateways on this machine: what these share changes once. */
  asksOne(): this {
    this.#asksOne = true
    return this
  }

  asks<Answer, V = Values>(ask: Asking<Answer, V>['ask'], show: Asking<Answer, V>['show']): this {
    return this.asksGateways().runs<V>(async () => {
      const client = await import('./ask.ts')
      return async invocation => {
        const json = await client.ask<Answer>(invocation.gateway, ...(await ask(invocation)))
        return { json, ...(await show(json, invocation)) }
      }
    })
  }

  async #runEach<V>(load: Load<V>): Promise<number> {
    const given = this.optsWithGlobals<Globals>()
    const { config: configs = [defaultFolder], json, url, ...values } = given
    const { io } = this.#run
    const config = configs.at(-1) ?? defaultFolder
    const gateways = await this.#gateways(configs, url)
    const run = await load()
    let code = 0
    for (const gateway of gateways) {
      // Not among the output, which may be for programs.
      if (gateways.length > 1) io.stderr.write(`process ${gateway.id}:\n`)
      const invocation = { config, configs, gateway, values: values as V, rest: this.args, io }
      // A command that fails at one gateway is still sent to the others.
      const done = async () => await print((await run(invocation)) ?? {}, json, io)
      code = Math.max(code, await this.#guarded(done))
    }
    return code
  }

  async #gateways(configs: readonly string[], url: string | undefined): Promise<Connection[]> {
    if (!this.#isAsked(this.args)) {
      if (url !== undefined) this.error('No gateway is asked: leave out --url.')
      return [{ base: '' }]
    }
    const { localGateways, remoteGateway } = await import('./ask.ts')
    if (url !== undefined) return [remoteGateway(url, this.#run.io)]
    const all = await localGateways(configs, this.#run.io)
    const { parent } = this
    return parent instanceof CliCommand && parent.#asksOne ? all.slice(0, 1) : all
  }

  async #guarded(work: () => Promise<number>): Promise<number> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof UsageError) return this.error(error.message)
      if (!(error instanceof ConfigError || error instanceof CommandError)) throw error
      this.#run.io.stderr.write(`${printableLines(error.message)}\n`)
      return 1
    }
  }

  #refuseSurplusWords(): void {
    const word = this.args[this.registeredArguments.length]
    if (word === undefined) return
    // A default command gets the words of a command that there is not.
    const isNamed = this.parent?.args[0] === this.name()
    const shown = isNamed ? this : (this.parent ?? this)
    const names = shown.commands.map(each => each.name())
    if (names.length > 0) {
      const line = shown.parent === null ? word : `${shown.name()} ${word}`
      shown.error(`There is no command "${line}".${nearest(word, names)}`)
    }
    this.error('One word too many. Folders follow --config, passwords are asked for.')
  }
}
