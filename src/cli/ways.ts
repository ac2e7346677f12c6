/** The ways to call a command: their words and options, and which one a command line takes. */
import { nearest } from '../config/schema/faults.ts'
import {
  type Command,
  commonOptions,
  gatewayOptions,
  jsonOption,
  type Option,
  type Options,
  UsageError,
  type Way
} from './command.ts'

export interface Word {
  readonly text: string
  /** Whether it stands for a value, such as ROUTE. */
  readonly isValue: boolean
  readonly isOptional: boolean
}

/** A command line without the command's name. */
export interface Typed {
  readonly words: readonly string[]
  /** The names of the options. */
  readonly options: readonly string[]
}

export function waysOf({ ways = [{}] }: Command): readonly Way[] {
  return ways
}

/** The options that a way takes, by name. */
export function optionsOfWay(way: Way, { options = {}, asksGateway = false }: Command): Options {
  const declared: Options = { ...options, json: jsonOption, ...commonOptions }
  const named = [...(way.needs ?? []), ...(way.takes ?? [])].map((name): [string, Option] => {
    const option = declared[name]
    if (option === undefined) throw new Error(`No option is declared as "${name}"`)
    return [name, option]
  })
  return {
    ...Object.fromEntries(named),
    ...(asksGateway && way.isLocal !== true && gatewayOptions),
    ...commonOptions
  }
}

/** All options of a command: its own in their order, then the shared ones. */
export function optionsOf(command: Command): Options {
  const all: Options = Object.assign({}, ...waysOf(command).map(way => optionsOfWay(way, command)))
  const shared: Options = { ...gatewayOptions, json: jsonOption, ...commonOptions }
  const order = Object.keys({ ...command.options, ...shared })
  return Object.fromEntries(
    Object.entries(all).toSorted(([a], [b]) => order.indexOf(a) - order.indexOf(b))
  )
}

/** The word of a way at this position; undefined beyond its end. */
export function wordAt({ words = '' }: Way, index: number): Word | undefined {
  const all = words.split(' ').filter(word => word !== '')
  const last = all.at(-1)
  const word = all[index] ?? (last?.endsWith('…') === true ? last : undefined)
  if (word === undefined) return undefined
  const isOptional = word.startsWith('[')
  const text = word.replace('…', '').replace('[', '').replace(']', '')
  return { text, isOptional, isValue: text.slice(0, 1) !== text.slice(0, 1).toLowerCase() }
}

/** Whether a way may begin with these words. */
export function mayBegin(way: Way, words: readonly string[]): boolean {
  return words.every((word, index) => {
    const declared = wordAt(way, index)
    return declared !== undefined && (declared.isValue || declared.text === word)
  })
}

/** Whether the words are all that it needs. */
function isComplete(way: Way, words: readonly string[]): boolean {
  const next = wordAt(way, words.length)
  return mayBegin(way, words) && (next === undefined || next.isOptional)
}

/** The names of the subcommands; none if there is a way without. */
export function subcommandsOf(command: Command): readonly string[] {
  const first = waysOf(command).map(way => wordAt(way, 0))
  const names = first.flatMap(word => (word === undefined || word.isValue ? [] : [word.text]))
  return names.length === first.length ? [...new Set(names)] : []
}

/** A way that has the words of a command line. */
interface Candidate {
  readonly way: Way
  /** Options of the command line that it does not take. */
  readonly foreign: readonly string[]
  /** Options that it needs, and that are not given. */
  readonly missing: readonly string[]
}

/**
 * The way that a command line takes; undefined where the command checks its words by itself.
 * @throws UsageError for a command line that is none of the command's ways
 */
export function wayOf(name: string, command: Command, typed: Typed): Way | undefined {
  const fitting = waysOf(command).filter(way => isComplete(way, typed.words))
  if (fitting.length === 0) {
    if (command.checksWords === true) return undefined
    throw new UsageError(wordsProblem(name, command, typed.words))
  }
  const candidates = fitting.map((way): Candidate => ({
    way,
    foreign: typed.options.filter(each => !Object.hasOwn(optionsOfWay(way, command), each)),
    missing: (way.needs ?? []).filter(each => !typed.options.includes(each))
  }))
  const able = candidates.filter(({ foreign }) => foreign.length === 0)
  if (able.length === 0) {
    const closest = candidates.reduce((a, b) => (distance(b) < distance(a) ? b : a))
    throw new UsageError(optionProblem(name, command, closest))
  }
  const taken = able.find(({ missing }) => missing.length === 0)
  if (taken !== undefined) return taken.way
  const options = optionsOf(command)
  const alternatives = able.map(({ missing }) =>
    missing.map(each => withValue(each, options[each])).join(' and ')
  )
  const all = new Set([...nextWords(command, typed), ...alternatives])
  throw new UsageError(`Give ${[...all].join(', or ')}.`)
}

/** Those with which a longer way goes on that takes the options, too. */
function nextWords(command: Command, typed: Typed): string[] {
  return waysOf(command)
    .filter(way => mayBegin(way, typed.words) && !isComplete(way, typed.words))
    .filter(way => typed.options.every(each => Object.hasOwn(optionsOfWay(way, command), each)))
    .flatMap(way => wordAt(way, typed.words.length)?.text ?? [])
}

function distance({ foreign, missing }: Candidate): number {
  return foreign.length + missing.length
}

/** `--until TIME` */
export function withValue(name: string, option: Option | undefined): string {
  return option?.value === undefined ? `--${name}` : `--${name} ${option.value}`
}

function wordsProblem(name: string, command: Command, words: readonly string[]): string {
  const ways = waysOf(command)
  const wrong = words.findIndex((_, index) =>
    ways.every(way => !mayBegin(way, words.slice(0, index + 1)))
  )
  const before = wrong === -1 ? words : words.slice(0, wrong)
  const possible = ways
    .filter(way => mayBegin(way, before))
    .flatMap(way => wordAt(way, before.length) ?? [])
  const texts = [...new Set(possible.map(({ text }) => text))]
  const word = words[wrong]
  const line = [name, ...before].join(' ')
  if (word === undefined) return `Missing after "${line}": ${texts.join(', ')}.`
  if (texts.length > 0) {
    return `There is no "${line} ${word}".${nearest(word, texts)}`
  }
  const takesNone = ways.every(way => wordAt(way, 0) === undefined)
  const advice = takesNone ? ` If that is the config folder, write --config ${word}.` : ''
  return `Not understood: "${word}".${advice}`
}

function optionProblem(name: string, command: Command, { way, foreign }: Candidate): string {
  const [option = ''] = foreign
  const options = optionsOf(command)
  const titleOf = ({ words = '', needs = [] }: Way) => {
    const parts = [name, words, ...needs.map(each => withValue(each, options[each]))]
    return `"${parts.filter(part => part !== '').join(' ')}"`
  }
  const owners = waysOf(command)
    .filter(each => Object.hasOwn(optionsOfWay(each, command), option))
    .map(titleOf)
  return `--${option} is no option of ${titleOf(way)}, but of ${owners.join(' and ')}.`
}
