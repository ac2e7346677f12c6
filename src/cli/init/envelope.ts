/** The outer object of a back-end's responses: how it says yes and no, and where its message is. */
import { isRawNumber, type Json } from '../../json/values.ts'
import type { AnswerTest } from '../../config/schema/upstream-login.ts'
import { type BackendResponse, isOk } from './client.ts'
import { directMembers, firstNamed, type Member, membersOf } from './paths.ts'

type Scalar = string | number | boolean

export interface BackendEnvelope {
  /** The member that tells success or failure. */
  readonly code: string
  /** Its values in successful responses. */
  readonly ok: readonly Scalar[]
  readonly message?: string
}

/** Codes of success may differ from call to call; a flag says the same everywhere. */
const flagNames = [/^(success|ok)$/i]
const codeNames = [
  /^(code|status_?code|err_?no|err(or)?_?code|ret(_?code)?|result_?code)$/i,
  /^(status|state|error|success)$/i
]
const messageNames = [/^(message|msg|err(or)?_?(msg|message)|desc|description|info|detail)$/i]
/** A code is short: longer texts are data. */
const codeText = /^[A-Z0-9_-]{1,16}$/i
const refusalCodes = new Set<Scalar>([401, 403, '401', '403'])

/** The envelope of a successful response; undefined for one that has none. */
export function envelopeOf({ body }: BackendResponse): BackendEnvelope | undefined {
  const members = directMembers(body)
  const code = codeIn(members)
  // A single member named so is data; beside a message or data it is an envelope.
  if (code === undefined || members.length < 2) return undefined
  const message = firstNamed(members, messageNames, isTextOrNull)
  const isSure = message !== undefined || /^(code|success|ok|err_?no)$/i.test(code.name)
  if (!isSure) return undefined
  return {
    code: code.path,
    ok: [code.value as Scalar],
    ...(message !== undefined && { message: message.path })
  }
}

/** Joins what several successful responses say; the first one decides which member it is. */
export function joinEnvelopes(
  envelopes: ReadonlyArray<BackendEnvelope | undefined>
): BackendEnvelope | undefined {
  const [first, ...others] = envelopes.filter(each => each !== undefined)
  if (first === undefined) return undefined
  const same = others.filter(({ code }) => code === first.code)
  const message = [first, ...same].find(each => each.message !== undefined)?.message
  return {
    ...first,
    ok: [...new Set([first, ...same].flatMap(({ ok }) => ok))],
    ...(message !== undefined && { message })
  }
}

/** Whether a response is a success, by its status and the codes of other successes. */
export function isSuccess(response: BackendResponse, envelope?: BackendEnvelope): boolean {
  if (!isOk(response) || !response.isJson) return false
  const code = codeOf(response)
  if (code === undefined) return true
  if (envelope?.code === code.path) return envelope.ok.includes(code.value as Scalar)
  return !refusalCodes.has(code.value as Scalar) && code.value !== false
}

/** The tests by which the sign-in of a back-end is recognised. */
export interface SignInTests {
  readonly success: AnswerTest
  readonly refused: AnswerTest
  /** Whether nothing told both responses apart. */
  readonly isGuess?: true
}

const refusedStatuses = [400, 401, 403, 404, 422]

/** @param token the path of the token, which a refusal does not have */
export function signInTests(
  success: BackendResponse,
  refusal: BackendResponse,
  token?: string
): SignInTests {
  const byStatus = { success: { status: [success.status] } }
  if (!isOk(refusal)) {
    return { ...byStatus, refused: { status: [...new Set([...refusedStatuses, refusal.status])] } }
  }
  const [yes, no] = [codeOf(success), codeOf(refusal)]
  if (yes !== undefined && yes.path === no?.path && yes.value !== no.value) {
    return {
      success: { path: yes.path, in: [yes.value as Scalar] },
      refused: { path: no.path, in: [no.value as Scalar] }
    }
  }
  const inBoth = new Set(membersOf(success.body).map(({ path }) => path))
  const onlyRefused = membersOf(refusal.body).find(
    ({ path, value }) => !inBoth.has(path) && value !== null && value !== false
  )
  if (onlyRefused !== undefined) {
    return {
      success: token === undefined ? byStatus.success : { path: token },
      refused: { path: onlyRefused.path }
    }
  }
  return { ...byStatus, refused: { status: refusedStatuses }, isGuess: true }
}

function codeOf({ body }: BackendResponse): Member | undefined {
  return codeIn(directMembers(body))
}

function codeIn(members: readonly Member[]): Member | undefined {
  const isFlag = (value: Json) => typeof value === 'boolean'
  return firstNamed(members, flagNames, isFlag) ?? firstNamed(members, codeNames, isCode)
}

function isCode(value: Json): boolean {
  if (isRawNumber(value)) return false
  if (typeof value === 'number') return Number.isSafeInteger(value)
  return typeof value === 'boolean' || (typeof value === 'string' && codeText.test(value))
}

function isTextOrNull(value: Json): boolean {
  return typeof value === 'string' || value === null
}
