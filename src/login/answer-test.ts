/** The tests of config by which a back-end's responses are told apart. */
import type { AnswerTest } from '../config/schema/upstream-login.ts'
import { isRawNumber } from '../json/values.ts'
import { valuesAt } from './response-values.ts'

/** @param content of a response that is JSON */
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
