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
  if (names.length === 0) {
    return report([], `{${placeholder}} needs a session, and there is none: write a constant`)
  }
  const reference = sessionNameOf(placeholder)
  if (reference !== undefined && names.includes(reference.name)) return
  const list = names.join(', ').replace('profile', 'profile.MEMBER')
  const near = nearest(placeholder, names)
  report([], `there is no name {${placeholder}}.${near} The names: ${list}`)
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
