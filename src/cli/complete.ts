/** The candidates for the next word of a command line, from the commands' declarations. */
import type { Command, Option, Options, Way } from './command.ts'
import { mayBegin, optionsOf, optionsOfWay, waysOf, type Word, wordAt } from './ways.ts'

export interface Candidate {
  readonly value: string
  readonly about: string
}

export interface Completion {
  readonly candidates: readonly Candidate[]
  /** Set when names of files may follow: the shell completes those. */
  readonly names?: 'files' | 'folders'
}

interface CompletionSource {
  readonly commands: Readonly<Record<string, Command>>
  /** Options of every command. */
  readonly common: Options
  /** The values of a placeholder such as ROUTE, with this config folder. */
  readonly valuesOf: (placeholder: string, folder: string) => Promise<readonly Candidate[]>
}

/** @param words after the program's name; the last one is being typed, and may be empty */
export async function complete(
  words: readonly string[],
  { commands, common, valuesOf }: CompletionSource
): Promise<Completion> {
  const current = words.at(-1) ?? ''
  const parsed = parseWords(words.slice(0, -1), { ...common, ...allOptions(commands) })
  const [name, ...rest] = parsed.positionals
  const command = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined
  const ways = command === undefined ? [] : waysLeft(command, rest, parsed.used)
  const placed = async (placeholder: string | undefined): Promise<Completion> => {
    if (placeholder === undefined) return { candidates: [] }
    if (/^(?:DIR|NEW_DIR)$/.test(placeholder)) return { candidates: [], names: 'folders' }
    if (/^(?:FILE|TSCONFIG)/.test(placeholder)) return { candidates: [], names: 'files' }
    return { candidates: await valuesOf(placeholder, parsed.config) }
  }
  const completion = async (): Promise<Completion> => {
    if (parsed.awaits !== undefined) return await placed(parsed.awaits.value)
    if (current.startsWith('-')) {
      const options: Options =
        command === undefined
          ? common
          : Object.assign({}, ...ways.map(way => optionsOfWay(way, command)))
      const left = Object.entries(options).filter(
        ([option, { multiple }]) => multiple === true || !parsed.used.has(option)
      )
      return {
        candidates: left.map(([option, { description }]) => ({
          value: `--${option}`,
          about: description
        }))
      }
    }
    if (name === undefined) {
      const all = Object.entries(commands)
      return { candidates: all.map(([value, { summary }]) => ({ value, about: summary })) }
    }
    const nextWords = ways.flatMap(way => wordAt(way, rest.length) ?? [])
    return join(await Promise.all(nextWords.map(word => completionOf(word, placed))))
  }
  const { candidates, ...names } = await completion()
  return {
    ...names,
    candidates: candidates.filter(
      ({ value }, index, all) =>
        value.startsWith(current) && all.findIndex(other => other.value === value) === index
    )
  }
}

/** The ways that may begin with these words, and take these options. */
function waysLeft(
  command: Command,
  words: readonly string[],
  used: ReadonlySet<string>
): readonly Way[] {
  return waysOf(command).filter(way => {
    const options = optionsOfWay(way, command)
    return mayBegin(way, words) && [...used].every(option => Object.hasOwn(options, option))
  })
}

async function completionOf(
  { text, isValue }: Word,
  placed: (placeholder: string) => Promise<Completion>
): Promise<Completion> {
  return isValue ? await placed(text) : { candidates: [{ value: text, about: '' }] }
}

function allOptions(commands: CompletionSource['commands']): Options {
  return Object.assign({}, ...Object.values(commands).map(optionsOf))
}

/** Parses the words before the current one. `awaits`: the option whose value the current word is. */
function parseWords(words: readonly string[], options: Options) {
  const positionals: string[] = []
  const used = new Set<string>()
  let config = 'config'
  let awaits: Option | undefined
  let last = ''
  for (const word of words) {
    if (awaits !== undefined) {
      if (last === 'config') config = word
      awaits = undefined
      continue
    }
    const [, long, value] = /^--([^=]+)(?:=(.*))?$/.exec(word) ?? []
    const option =
      long ??
      (word.startsWith('-')
        ? Object.keys(options).find(each => `-${options[each]?.short ?? ''}` === word)
        : undefined)
    if (option === undefined) {
      if (!word.startsWith('-')) positionals.push(word)
      continue
    }
    used.add(option)
    last = option
    if (option === 'config' && value !== undefined) config = value
    if (options[option]?.type === 'string' && value === undefined) awaits = options[option]
  }
  return { positionals, used, config, awaits }
}

function join(all: readonly Completion[]): Completion {
  const names = all.find(each => each.names !== undefined)?.names
  return { candidates: all.flatMap(({ candidates }) => candidates), ...(names && { names }) }
}
