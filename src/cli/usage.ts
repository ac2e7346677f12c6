/** The texts of `--help`. */
import type { Command, Option, Options, Way } from './command.ts'
import { optionsOf, optionsOfWay, subcommandsOf, waysOf, withValue, wordAt } from './ways.ts'

const maxColumns = 90

const exitCodes =
  'Exit codes: 0 done, 1 faulty config or failed command, 2 wrong command line, ' +
  '3 done, with findings.'

export function usageOfProgram(
  commands: Readonly<Record<string, Command>>,
  options: Options
): string {
  return `Usage: console-gateway COMMAND [OPTIONS]

${Object.entries(commands)
  .map(([name, { summary }]) => `  ${name.padEnd(18)}${summary}`)
  .join('\n')}

Options:
${optionLines(Object.entries(options))}

${exitCodes}
`
}

export function usageOf(name: string, command: Command): string {
  const { summary, details } = command
  const lines = waysOf(command).map((way, index) => {
    return `${index === 0 ? 'Usage:' : '      '} ${wayLine(name, way, command)}`
  })
  const options = Object.entries(optionsOf(command)).map(
    ([option, declared]) =>
      [option, { ...declared, description: descriptionOf(option, declared, command) }] as const
  )
  return `console-gateway ${name}: ${summary}

${lines.join('\n')}
${details === undefined ? '' : `\n${details.trim()}\n`}
Options:
${optionLines(options)}

${exitCodes}
`
}

/** A way with all its options, in lines of a terminal's width. */
function wayLine(name: string, way: Way, command: Command): string {
  const { words = '', needs = [], takes = [] } = way
  const options = optionsOfWay(way, command)
  const formatted = (option: string) => withValue(option, options[option])
  const more = (option: string) => (options[option]?.multiple === true ? '…' : '')
  const parts = [
    ...words.split(' ').filter(word => word !== ''),
    ...needs.map(option => `${formatted(option)}${more(option)}`),
    ...takes.map(option => `[${formatted(option)}]${more(option)}`)
  ]
  const lines = [`console-gateway ${name}`]
  for (const part of parts) {
    const line = `${lines.at(-1) ?? ''} ${part}`
    if (line.length <= maxColumns) lines.splice(-1, 1, line)
    else lines.push(`${' '.repeat(10)} ${part}`)
  }
  return lines.join('\n')
}

/** Begins with the subcommands that take the option, unless all do. */
function descriptionOf(name: string, { description }: Option, command: Command): string {
  const takers = new Set(
    waysOf(command)
      .filter(way => Object.hasOwn(optionsOfWay(way, command), name))
      .map(way => wordAt(way, 0)?.text)
  )
  const all = subcommandsOf(command)
  const some = all.filter(subcommand => takers.has(subcommand))
  return some.length === all.length ? description : `${some.join(', ')}: ${description}`
}

function optionLines(options: ReadonlyArray<readonly [string, Option]>): string {
  const left = ([name, option]: readonly [string, Option]) => {
    const short = option.short === undefined ? '    ' : `-${option.short}, `
    return `  ${short}${withValue(name, option)}`
  }
  const width = Math.max(...options.map(entry => left(entry).length)) + 2
  return options.map(entry => `${left(entry).padEnd(width)}${entry[1].description}`).join('\n')
}
