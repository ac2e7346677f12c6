/** Reads a back-end's response by the paths of config. */
import { isRecord } from '../json/values.ts'

const isNumber = (name: string) => /^\d+$/.test(name)

/**
 * The values at a path of own members. A list on the way stands for each of its items, unless the
 * next name is a number: that is one item. Each value is visited once, so the time is linear.
 */
export function valuesAt(content: unknown, path: readonly string[]): unknown[] {
  let values = [content]
  for (const name of path) values = values.flatMap(value => step(value, name))
  return values
}

function step(value: unknown, name: string): unknown[] {
  if (Array.isArray(value)) {
    if (isNumber(name)) return Object.hasOwn(value, name) ? [value[Number(name)]] : []
    return value.flatMap(item => ownMember(item, name))
  }
  return ownMember(value, name)
}

function ownMember(value: unknown, name: string): unknown[] {
  return isRecord(value) && Object.hasOwn(value, name) ? [value[name]] : []
}

/** More than people nest, and less than any writer of JSON takes. */
const maxDepth = 100

/** Whether a value has so many levels that it could not be written into a session. */
export function isTooDeep(value: unknown): boolean {
  let level = [value]
  for (let depth = 0; depth <= maxDepth; depth++) {
    level = level.flatMap(each => (typeof each === 'object' && each ? Object.values(each) : []))
    if (level.length === 0) return false
  }
  return true
}

const maxRead = 4000
const maxShown = 200

/**
 * The first text among the values as one line for people. Undefined for markup: consoles may show a
 * message as HTML.
 */
export function plainMessage(values: readonly unknown[]): string | undefined {
  const text = values.find(value => typeof value === 'string')
  if (text === undefined) return undefined
  // Controls, marks of direction, and unpaired surrogates are characters of the class C.
  const line = text
    .slice(0, maxRead)
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
  if (line === '' || /<[a-z!/?]/i.test(line)) return undefined
  return line.slice(0, maxShown).toWellFormed()
}
