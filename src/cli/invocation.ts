/** Parses the command line of one command. */
import { parseArgs } from 'node:util'
import {
  type Command,
  defaultFolder,
  type GatewayAddress,
  type Invocation,
  type Io,
  type Option,
  type Options,
  UsageError
} from './command.ts'
import { optionsOf, wayOf } from './ways.ts'

/**
 * @param words with the command's name, which options may precede
 * @throws UsageError for words and options that the command would ignore
 */
export function parseInvocation(
  name: string,
  command: Command,
  words: readonly string[],
  io: Io
): Invocation {
  const options = optionsOf(command)
  const { values, positionals, tokens } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: parsable(options),
    tokens: true
  })
  refuseSecondValues(tokens, options)
  const { config, json, help: _help, ...otherValues } = values
  const [, ...rest] = positionals
  const way = wayOf(name, command, { words: rest, options: Object.keys(values) })
  const gateway = gatewayOf(otherValues, io)
  const asksGateway = command.asksGateway === true && way !== undefined && way.isLocal !== true
  return {
    config: typeof config === 'string' ? config : defaultFolder,
    gateway,
    asksLocally: asksGateway && gateway.url === undefined,
    json: json === true,
    values: otherValues as Invocation['values'],
    rest,
    io
  }
}

/** @throws UsageError for an option with two values of which parseArgs would take the last */
function refuseSecondValues(
  tokens: ReadonlyArray<{
    readonly kind: string
    readonly name?: string
    readonly value?: unknown
  }>,
  options: Options
): void {
  const values = new Map<string, unknown>()
  for (const { kind, name, value } of tokens) {
    if (kind !== 'option' || name === undefined || options[name]?.multiple) continue
    if (values.has(name) && values.get(name) !== value) {
      throw new UsageError(`--${name} takes one value, but it was given two.`)
    }
    values.set(name, value)
  }
}

function gatewayOf(options: Readonly<Record<string, unknown>>, io: Io): GatewayAddress {
  const textOf = (name: string) => {
    const value = options[name]
    return typeof value === 'string' ? value : undefined
  }
  const address = {
    url: textOf('url'),
    tokenFile: textOf('token-file'),
    caFile: textOf('ca'),
    io
  }
  if (address.url === undefined && (address.tokenFile ?? address.caFile) !== undefined) {
    throw new UsageError('--token-file and --ca go with --url.')
  }
  return address
}

type ParsableOption = Pick<Option, 'type' | 'short' | 'multiple'>

/** As parseArgs takes them. */
export function parsable(options: Options): Record<string, ParsableOption> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short !== undefined && { short }), ...(multiple && { multiple }) }
    ])
  )
}
