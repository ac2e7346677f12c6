import type { AnswerTest } from '../config/schema/response-tests.ts'
import { isRawNumber, isRecord } from '../json/values.ts'

/**
 * The values at a path. A list stands for each of its items, or where a number follows, for one.
 */
export function valuesAt(content: unknown, path: readonly string[]): unknown[] {
  let values = [content]
  for (const name of path) values = values.flatMap(value => step(value, name))
  return values
}

function step(value: unknown, name: string): unknown[] {
  if (!Array.isArray(value)) return ownMember(value, name)
  if (!/^\d+$/.test(name)) return value.flatMap(item => ownMember(item, name))
  return Object.hasOwn(value, name) ? [value[Number(name)]] : []
}

function ownMember(value: unknown, name: string): unknown[] {
  return isRecord(value) && Object.hasOwn(value, name) ? [value[name]] : []
}

export function matchesTest(test: AnswerTest, status: number, content: unknown): boolean {
  if (test.status !== undefined && !test.status.includes(status)) return false
  if (test.path === undefined) return true
  return valuesAt(content, test.path.split('.')).some(value => fits(test, plain(value)))
}

/** Whether a value is one that a test names; without any it must be there. */
function fits({ in: values, startsWith }: AnswerTest, value: unknown): boolean {
  if (values === undefined && startsWith === undefined) {
    return value !== null && value !== undefined && value !== false
  }
  if (values?.includes(value as string | number | boolean) === true) return true
  return typeof value === 'string' && startsWith?.some(start => value.startsWith(start)) === true
}

/** A number that a double cannot hold becomes its digits, so that two ids never become equal. */
export function plain(value: unknown): unknown {
  return isRawNumber(value) ? value.rawJSON : value
}

const maxRead = 4000
const maxShown = 200

/** The first text, as one line. Undefined for markup: consoles may show a message as HTML. */
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
