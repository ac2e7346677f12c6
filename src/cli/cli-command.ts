import { Command, type CommandOptions } from 'commander'
import { ConfigError, nearest } from '../config/schema/faults.ts'
import { printableLines } from '../observability/unprintable.ts'
import {
  CommandError,
  defaultFolder,
  type Asking,
  type Invocation,
  type Io,
  UsageError,
  type Values
} from './command.ts'

interface Run {
  readonly io: Io
  exitCode: number
}

type Load<V> = () => Promise<(invocation: Invocation<V>) => Promise<number | void>>

type IsAsked = (words: readonly string[]) => boolean

const surplusWord =
  'One word too many. A config folder follows --config. A password comes from a prompt or from ' +
  'standard input: here all on this machine would see it.'

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
    return this.option(
      flags,
      `${description}; may be repeated`,
      (value: string, former: readonly string[] | undefined) => [...(former ?? []), value]
    )
  }

  details(text: string): this {
    return this.addHelpText('after', `\n${text.trim()}`)
  }

  examples(...lines: readonly string[]): this {
    return this.addHelpText('after', ['\nExamples:', ...lines].join('\n  '))
  }

  passwordEnv(): this {
    return this.option('--password-env <variable>', 'the environment variable with the password')
  }

  json(): this {
    return this.option('--json', 'print for programs')
  }

  /** @param load imports the implementation, so that other commands need not load it */
  runs<V>(load: Load<V>): this {
    return this.action(async () => {
      this.#refuseSurplusWords()
      this.#run.exitCode = await this.#runEach(load)
    })
  }

  /** It is run for each gateway on this machine, or the one of `--url`. */
  asksGateways(isAsked: IsAsked = () => true): this {
    this.#isAsked = isAsked
    return this.json().option(
      '--url <url>',
      'ask the gateway at this operators’ address; its token is in CONSOLE_GATEWAY_TOKEN'
    )
  }

  /** Its subcommands ask one of several gateways on this machine: what these share changes once. */
  asksOne(): this {
    this.#asksOne = true
    return this
  }

  asks<Answer, V = Values>(ask: Asking<Answer, V>['ask'], show: Asking<Answer, V>['show']): this {
    return this.asksGateways().runs<V>(async () => {
      const { askAndShow } = await import('./ask.ts')
      return async invocation => await askAndShow({ ask, show }, invocation)
    })
  }

  async #runEach<V>(load: Load<V>): Promise<number> {
    const {
      config: configs = [defaultFolder],
      json = false,
      url,
      ...values
    } = this.optsWithGlobals<{
      readonly config?: readonly string[]
      readonly json?: boolean
      readonly url?: string
    }>()
    const { io } = this.#run
    const config = configs.at(-1) ?? defaultFolder
    return await this.#guarded(async () => {
      const gateways = await this.#gateways(configs, url)
      const run = await load()
      let code = 0
      for (const gateway of gateways) {
        // Not among the output, which may be for programs.
        if (gateways.length > 1) io.stderr.write(`process ${gateway?.id}:\n`)
        const rest = this.args
        const invocation = { config, configs, gateway, json, values: values as V, rest, io }
        // A command that fails at one gateway is still sent to the others.
        code = Math.max(code, await this.#guarded(async () => (await run(invocation)) ?? 0))
      }
      return code
    })
  }

  async #gateways(configs: readonly string[], url: string | undefined) {
    if (!this.#isAsked(this.args)) {
      if (url !== undefined) this.error('No gateway is asked: leave out --url.')
      return [undefined]
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
    this.error(surplusWord)
  }
}
