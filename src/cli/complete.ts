/** The candidates for the next word of a command line, from the commands' declarations. */
import { type Command, type Option, optionsOf } from './command.ts'

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
  readonly common: Readonly<Record<string, Option>>
  /** The values of a placeholder such as ROUTE, with this config folder. */
  readonly valuesOf: (placeholder: string, folder: string) => readonly Candidate[]
}

const placeholders = /^[A-Z][A-Z-_.a-z]*$/

/** @param words after the program's name; the last one is being typed, and may be empty */
export function complete(
  words: readonly string[],
  { commands, common, valuesOf }: CompletionSource
): Completion {
  const current = words.at(-1) ?? ''
  const parsed = parseWords(words.slice(0, -1), { ...common, ...allOptions(commands) })
  const [name, ...rest] = parsed.positionals
  const command = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined
  const options = command === undefined ? common : optionsOf(command)
  const placed = (placeholder: string | undefined): Completion => {
    if (placeholder === undefined) return { candidates: [] }
    if (/^(?:DIR|NEW_DIR)$/.test(placeholder)) return { candidates: [], names: 'folders' }
    if (/^(?:FILE|TSCONFIG)/.test(placeholder)) return { candidates: [], names: 'files' }
    return { candidates: valuesOf(placeholder, parsed.config) }
  }
  const completion = (): Completion => {
    if (parsed.awaits !== undefined) return placed(parsed.awaits.value)
    if (current.startsWith('-')) {
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
    const nextWords = (command?.usage ?? []).flatMap(usage => nextWord(usage, rest))
    return join(
      nextWords.map(word =>
        placeholders.test(word) ? placed(word) : { candidates: [{ value: word, about: '' }] }
      )
    )
  }
  const { candidates, ...names } = completion()
  return {
    ...names,
    candidates: candidates.filter(
      ({ value }, index, all) =>
        value.startsWith(current) && all.findIndex(other => other.value === value) === index
    )
  }
}

function allOptions(commands: CompletionSource['commands']): Record<string, Option> {
  return Object.assign({}, ...Object.values(commands).map(optionsOf))
}

/** Parses the words before the current one. `awaits`: the option whose value the current word is. */
function parseWords(words: readonly string[], options: Readonly<Record<string, Option>>) {
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

/** The word of a usage line after these; none if they do not match it. Its options come last. */
function nextWord(usage: string, rest: readonly string[]): string[] {
  const words: string[] = []
  for (const word of usage.split(' ')) {
    if (/^\[?-/.test(word)) break
    words.push(word.replace(/^\[|\]$/g, ''))
  }
  const fits = rest.every(
    (typed, index) =>
      words[index] !== undefined && (placeholders.test(words[index]) || words[index] === typed)
  )
  const word = words[rest.length]
  return fits && word !== undefined ? [word] : []
}

function join(all: readonly Completion[]): Completion {
  const names = all.find(each => each.names !== undefined)?.names
  return { candidates: all.flatMap(({ candidates }) => candidates), ...(names && { names }) }
}
