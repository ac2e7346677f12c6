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
import type { Path } from '../schema/node.ts'
import type { CheckedConfig, Report } from '../schema/config.ts'

const allNames = Object.keys(sessionNames) as SessionName[]

export function checkAnswers({ routes }: CheckedConfig, report: Report): void {
  for (const name of ['login', 'logout', 'profile', 'refresh'] as const) {
    const answer = routes.endpoints[name]?.answer
    const place = ['endpoints', name, 'answer']
    if (answer !== undefined) checkAnswer(answer, place, name !== 'logout', report)
  }
  for (const [name, route] of Object.entries(routes.routes)) {
    if (route.answer === undefined) continue
    const hasSession = route.access !== 'public'
    const place = ['routes', name, 'answer']
    checkAnswer(route.answer, place, hasSession, report)
    checkStatus(route.answer, place, report)
  }
  for (const [name, expected] of Object.entries(routes.expect)) {
    const { status, code, upstream, upstreamPath, response } = expected
    if ((status ?? code ?? upstream ?? upstreamPath ?? response) !== undefined) continue
    const message = 'expects nothing: set status, code, upstream, upstreamPath or response'
    report(['expect', name], message)
  }
}

/** @param hasSession whether a request for it always has one, whose names the template may have */
function checkAnswer(answer: AnswerConfig, place: Path, hasSession: boolean, report: Report): void {
  const values = [
    [['json'], answer.json] as const,
    ...Object.entries(answer.byRole ?? {}).map(([role, json]) => [['byRole', role], json] as const)
  ]
  const names = hasSession ? allNames : []
  for (const [path, json] of values) {
    checkTemplate(json, [...place, ...path], names, report)
    checkFlat(answer, json, [...place, ...path], report)
  }
  if (!hasSession && answer.byRole !== undefined) {
    const message = 'has no effect: no session is looked up here, so nobody has a role'
    report([...place, 'byRole'], message)
  }
}

/** @param names which it may have, and none without a session */
export function checkTemplate(
  json: unknown,
  place: Path,
  names: readonly SessionName[],
  report: Report
): void {
  if (typeof json === 'object' && json !== null) {
    for (const [key, member] of Object.entries(json)) {
      const step = Array.isArray(json) ? Number(key) : key
      checkTemplate(member, [...place, step], names, report)
    }
    return
  }
  const placeholder = placeholderOf(json)
  if (placeholder === undefined) return
  const message = faultOf(placeholder, names)
  if (message !== undefined) report(place, message)
}

function faultOf(placeholder: string, names: readonly SessionName[]): string | undefined {
  const reference = sessionNameOf(placeholder)
  const all: readonly string[] = names.length === 0 ? allNames : names
  if (reference === undefined || !all.includes(reference.name)) {
    const list = all.join(', ').replace('profile', 'profile.MEMBER')
    return `there is no name {${placeholder}}.${nearest(placeholder, all)} The names: ${list}`
  }
  if (names.length > 0) return undefined
  return `{${placeholder}} needs a session, and none is looked up here: write a constant`
}

function checkFlat({ inEnvelope }: AnswerConfig, json: unknown, place: Path, report: Report): void {
  const mayBeObject = isRecord(json) || placeholderOf(json)?.startsWith('profile') === true
  if (inEnvelope !== 'flat' || mayBeObject) return
  report(place, 'must be a mapping, since `inEnvelope: flat` places its members')
}

/** RFC 9110 §15: statuses without a body, and redirects, which need another header. */
function checkStatus({ status = 200, inEnvelope }: RouteAnswerConfig, place: Path, report: Report) {
  const where = [...place, 'status']
  const isEmpty = status === 204 || status === 205
  if (isEmpty || (status >= 300 && status < 400)) {
    report(where, `expected a status with a body, such as 200, found ${status}`)
  } else if (status >= 400 && inEnvelope !== 'none') {
    const message =
      'is an error, and the envelope is that of a success: add `inEnvelope: none`, and write ' +
      'the whole body'
    report(where, message)
  }
}
