/** The envelope of `dialect: custom`: its names and codes are config's. */
import {
  type CustomEnvelope,
  type ErrorEntry,
  errorEntryOf
} from '../config/schema/custom-envelope.ts'
import { readsAs, type ResponseCode } from '../config/schema/response-codes.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { type ErrorCode, errorKinds, type GatewayError } from '../errors/errors.ts'
import type { Envelope, MessageOf } from './dialect.ts'
import { errorExtra } from './error-extra.ts'
import { createSuccess, jsonType } from './success.ts'
import { createSuccessCodes } from './success-codes.ts'

type Named = Array<readonly [name: string, value: unknown]>

const named = (members: ReadonlyArray<readonly [name: string | false, value: unknown]>) =>
  Object.fromEntries(members.filter(([name]) => name !== false) as Named)

export function createCustomEnvelope(
  settings: GatewayConfig['envelope'] & { readonly custom: CustomEnvelope },
  messageOf: MessageOf
): Envelope {
  const { successCode, custom } = settings
  const { members, successMessage } = custom
  const entries = entriesOf(custom)
  const codeOf = errorCodes(settings, entries)
  const success = createSuccess(
    named([
      [members.success, true],
      [members.code, successCode],
      [members.message, successMessage]
    ]),
    members.data
  )
  const failure: Envelope['failure'] = (error, requestId, language) => {
    const body = named([
      [members.success, false],
      [members.code, codeOf(error)],
      [members.message, messageOf(error, language, entries.get(error.code)?.entry.message)],
      [members.errorCode, error.code],
      [members.showType, errorKinds[error.code].showType],
      [settings.requestId && members.requestId, requestId]
    ])
    return { ...errorExtra(error, settings.fieldErrors), ...body }
  }
  return {
    success,
    failure,
    login: () => success({}),
    loginRefused: (error, _type, { requestId, language }) => failure(error, requestId, language),
    errorType: jsonType,
    statusOf: code => entries.get(code)?.entry.status,
    notSignedIn: {},
    dataName: members.data,
    fillsUser: false
  }
}

type Entries = ReadonlyMap<string, { readonly key: string; readonly entry: ErrorEntry }>

function entriesOf({ errors }: CustomEnvelope): Entries {
  return new Map(
    (Object.keys(errorKinds) as ErrorCode[]).flatMap(code => {
      const match = errorEntryOf(errors, code)
      return match === undefined ? [] : [[code, match] as const]
    })
  )
}

/** The code of each error, of the type of the success code; never one that means success. */
function errorCodes(
  settings: GatewayConfig['envelope'] & { readonly custom: CustomEnvelope },
  entries: ReturnType<typeof entriesOf>
): (error: GatewayError) => ResponseCode {
  const { successCode, custom } = settings
  const { firstOther } = createSuccessCodes(settings)
  const typed = (code: number): ResponseCode =>
    typeof successCode === 'string' ? String(code) : code
  const isRefresh = (code: number) => custom.refreshCodes.some(each => readsAs(each, code))
  return ({ code, status, detail }) => {
    const match = entries.get(code)
    const number = detail.extra?.['code']
    const isOwn = typeof number === 'number' && (match === undefined || match.key === '*')
    return firstOther(
      ...(isOwn && !isRefresh(number) ? [typed(number)] : []),
      ...(match?.entry.code === undefined ? [] : [match.entry.code]),
      typed(status)
    )
  }
}
