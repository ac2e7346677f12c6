import {
  type AnswerConfig,
  placeholderOf,
  type RouteAnswerConfig,
  type SessionName,
  sessionNameOf,
  sessionNames
} from '../schema/answer.ts'
import { nearest } from '../schema/faults.ts'
import { isRecord } from '../../json/values.ts'
import type { Report } from '../schema/config.ts'

export function checkAnswer(answer: AnswerConfig, hasSession: boolean, report: Report): void {
  const values = [
    [['json'], answer.json] as const,
    ...Object.entries(answer.byRole ?? {}).map(([role, json]) => [['byRole', role], json] as const)
  ]
  const names = hasSession ? sessionNames : []
  for (const [path, json] of values) {
    checkTemplate(json, names, report.at(...path))
    checkFlat(answer, json, report.at(...path))
  }
  if (!hasSession && answer.byRole !== undefined) {
    report(['byRole'], 'has no effect: no session is looked up here, so nobody has a role')
  }
}

/** @param names none without a session */
export function checkTemplate(json: unknown, names: readonly SessionName[], report: Report): void {
  if (typeof json === 'object' && json !== null) {
    for (const [key, member] of Object.entries(json)) {
      const step = Array.isArray(json) ? Number(key) : key
      checkTemplate(member, names, report.at(step))
    }
    return
  }
  const placeholder = placeholderOf(json)
  if (placeholder === undefined) return
  const message = faultOf(placeholder, names)
  if (message !== undefined) report([], message)
}

function faultOf(placeholder: string, names: readonly SessionName[]): string | undefined {
  const reference = sessionNameOf(placeholder)
  const all: readonly string[] = names.length === 0 ? sessionNames : names
  if (reference === undefined || !all.includes(reference.name)) {
    const list = all.join(', ').replace('profile', 'profile.MEMBER')
    return `there is no name {${placeholder}}.${nearest(placeholder, all)} The names: ${list}`
  }
  if (names.length > 0) return undefined
  return `{${placeholder}} needs a session, and none is looked up here: write a constant`
}

function checkFlat({ inEnvelope }: AnswerConfig, json: unknown, report: Report): void {
  const mayBeObject = isRecord(json) || placeholderOf(json)?.startsWith('profile') === true
  if (inEnvelope !== 'flat' || mayBeObject) return
  report([], 'must be a mapping, since `inEnvelope: flat` places its members')
}

/** RFC 9110 §15: statuses without a body, and redirects, which need another header. */
export function checkStatus({ status = 200, inEnvelope }: RouteAnswerConfig, report: Report): void {
  const isEmpty = status === 204 || status === 205
  if (isEmpty || (status >= 300 && status < 400)) {
    report(['status'], `expected a status with a body, such as 200, found ${status}`)
  } else if (status >= 400 && inEnvelope !== 'none') {
    report(['status'], 'an error needs `inEnvelope: none`, and the whole body')
  }
}
