/** The outer object of every response, in the console's dialect: a table of members. */
import { STATUS_CODES } from 'node:http'
import {
  type CustomEnvelope,
  errorEntryOf,
  readsAs,
  type ResponseCode
} from '../config/schema/envelope.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { type ErrorCode, errorKinds, type GatewayError } from '../errors/errors.ts'
import { isRecord, type JsonRecord, put } from '../json/values.ts'

export const jsonType = 'application/json; charset=utf-8'

type Settings = GatewayConfig['envelope']
type Members = Readonly<Record<string, unknown>>
export type Language = 'en' | 'zh'

/**
 * `data`: under `data`. `flat`: beside the code and the message, which win; what is no object
 * stands under `data`. `none`: the value is the whole body.
 */
export type Placement = 'data' | 'flat' | 'none'

export type Envelope = ReturnType<typeof createEnvelope>

/** Those that an envelope of config names itself. */
const named = ['success', 'code', 'message', 'errorCode', 'requestId'] as const

/** What a member of an error says. `ownCode`: the number of a back-end, where it may stand. */
type Said = (typeof named)[number] | 'ownCode' | 'showType' | 'about' | 'title' | 'status'

interface Dialect {
  /** The members of every success before its value; undefined: a success is its value. */
  readonly head?: Members
  readonly failure: Readonly<Record<string, Said>>
  readonly dataName: string | false
  /** Whether it is one of Ant Design Pro's, whose sign-in and profile have members of their own. */
  readonly isPro?: true
}

function dialectOf({ dialect, successCode: code, custom }: Settings): Dialect {
  const head = { ok: true, code, message: 'OK' }
  const numbered = { ok: 'success', code: 'code', message: 'message' } as const
  const shown = {
    success: 'success',
    errorCode: 'errorCode',
    errorMessage: 'message',
    showType: 'showType',
    requestId: 'requestId'
  } as const
  const plain = { code: 'errorCode', requestId: 'requestId' } as const
  const pro = { dataName: 'data', isPro: true } as const
  switch (dialect) {
    case 'dual':
      return { ...pro, head: { ...head, success: true }, failure: { ...numbered, ...shown } }
    case 'ant-design-pro':
      return { ...pro, head: { success: true }, failure: { ...shown, code: 'ownCode' } }
    case 'base-response': {
      const { errorCode, requestId } = shown
      return { ...pro, head, failure: { ...numbered, errorCode, requestId } }
    }
    // RFC 9457 §3.1
    case 'problem':
      return {
        dataName: false,
        failure: { type: 'about', title: 'title', status: 'status', detail: 'message', ...plain }
      }
    case 'none':
      return { dataName: false, failure: { message: 'message', ...plain } }
    case 'custom':
      return customDialect(custom, code)
  }
}

function customDialect({ members, successMessage }: CustomEnvelope, code: ResponseCode): Dialect {
  const values = { success: true, code, message: successMessage }
  const head: Record<string, unknown> = {}
  const failure: Record<string, Said> = {}
  for (const said of named) {
    const name = members[said]
    if (name === false) continue
    failure[name] = said
    if (said in values) head[name] = values[said as keyof typeof values]
  }
  return { head, failure, dataName: members.data }
}

export function createEnvelope(settings: Settings) {
  const { custom, dialect, language, messages, inertToken, fieldErrors } = settings
  const { head, failure: saidBy, dataName, isPro = false } = dialectOf(settings)
  const entries = dialect === 'custom' ? custom.errors : {}
  const codes = codesOf(settings, entries)
  const messageOf = ({ code, detail }: GatewayError, asked: Language): string =>
    detail.message ?? messages[code] ?? errorKinds[code][language === 'auto' ? asked : language]
  const says: Record<Said, (error: GatewayError, requestId: string, asked: Language) => unknown> = {
    success: () => false,
    code: error => codes.own(error) ?? codes.other(error),
    ownCode: codes.own,
    message: (error, _, asked) => messageOf(error, asked),
    errorCode: ({ code }) => code,
    showType: ({ code }) => errorKinds[code].showType,
    requestId: (_, requestId) => requestId,
    about: () => 'about:blank',
    title: ({ status }) => STATUS_CODES[status] ?? 'Error',
    status: ({ status }) => status
  }
  const success = createSuccess(head, dataName)
  return {
    success,
    /** @param asked the language of the reader */
    failure: (error: GatewayError, requestId: string, asked: Language = 'en'): Members => {
      const { code: _, ...body }: Record<string, unknown> = error.detail.extra ?? {}
      if (fieldErrors !== false && error.detail.fieldErrors !== undefined) {
        body[fieldErrors] = error.detail.fieldErrors
      }
      for (const [name, said] of Object.entries(saidBy)) {
        const value = says[said](error, requestId, asked)
        if (value !== undefined) body[name] = value
      }
      return body
    },
    /** @param type the kind of sign-in that the console sent, and expects again */
    login: ({ type, authority }: Record<'type' | 'authority', string>): unknown => {
      if (!isPro) return success({})
      // It overwrites a stale token of an older back-end; a console sends no empty one.
      const result = { status: 'ok', type, currentAuthority: authority }
      const isBeside = dialect !== 'base-response'
      return success({ authToken: inertToken, ...result }, isBeside ? result : {})
    },
    /** In the language of config, or else in that of the reader. */
    messageOf,
    /** The content type of errors. */
    errorType: dialect === 'problem' ? 'application/problem+json; charset=utf-8' : jsonType,
    /** The HTTP status that config sets for an error code; it wins over `errorStatus`. */
    statusOf: (code: ErrorCode) => errorEntryOf(entries, code)?.entry.status,
    /** Members beside the profile's 401. */
    notSignedIn: (isPro ? { data: { isLogin: false } } : {}) as Members,
    /** The member that holds the value; false where its members stand beside the code. */
    dataName,
    /** Whether the profile has all members that Ant Design Pro reads, whatever the user has. */
    fillsUser: isPro
  }
}

export type Success = (data: unknown, extra?: Members, placement?: Placement) => unknown

/** @param head undefined: a success is its value */
function createSuccess(head: Members | undefined, dataName: string | false): Success {
  if (head === undefined) return data => data
  const name = dataName === false ? 'data' : dataName
  return (data, extra = {}, placement = 'data') => {
    if (placement === 'none') return data
    if ((placement === 'flat' || dataName === false) && isRecord(data)) {
      return flat(head, data, extra)
    }
    return { ...head, [name]: data, ...extra }
  }
}

/** A member of the value never replaces one by which a console tells success from failure. */
function flat(head: Members, data: JsonRecord, extra: Members): JsonRecord {
  const body: JsonRecord = { ...head }
  for (const name of Object.keys(data)) if (!Object.hasOwn(head, name)) put(body, name, data[name])
  return Object.assign(body, extra)
}

/** Of the type of the success code; never one by which a console sees a success. */
function codesOf(
  { successCode, custom, dialect }: Settings,
  entries: CustomEnvelope['errors']
): Record<'own' | 'other', (error: GatewayError) => ResponseCode | undefined> {
  const { alsoSuccess = [], refreshCodes = [] } = dialect === 'custom' ? custom : {}
  const isIn = (codes: readonly ResponseCode[], code: ResponseCode) =>
    codes.some(each => readsAs(each, code))
  const isSuccess = (code: ResponseCode) => isIn([successCode, ...alsoSuccess], code)
  const typed = (code: number) => (typeof successCode === 'string' ? String(code) : code)
  let spare = 500
  while (isSuccess(spare)) spare++
  return {
    own: ({ code, detail }) => {
      const number = detail.extra?.['code']
      const key = errorEntryOf(entries, code)?.key ?? '*'
      const mayStand = typeof number === 'number' && key === '*' && !isIn(refreshCodes, number)
      return mayStand && !isSuccess(typed(number)) ? typed(number) : undefined
    },
    other: ({ code, status }) => {
      const written = errorEntryOf(entries, code)?.entry.code
      const candidates = [...(written === undefined ? [] : [written]), typed(status)]
      return candidates.find(each => !isSuccess(each)) ?? typed(spare)
    }
  }
}
