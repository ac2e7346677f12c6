/** The codes by which a console recognizes a success: no error carries one of them. */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { readsAs, type ResponseCode } from '../config/schema/response-codes.ts'

type Settings = Pick<GatewayConfig['envelope'], 'successCode' | 'custom' | 'dialect'>

interface SuccessCodes {
  readonly isSuccess: (code: unknown) => boolean
  /** The first of these that is no code of success; a spare one if all are. */
  readonly firstOther: (...codes: readonly ResponseCode[]) => ResponseCode
}

export function createSuccessCodes({ successCode, custom, dialect }: Settings): SuccessCodes {
  const codes = [successCode, ...((dialect === 'custom' && custom?.alsoSuccess) || [])]
  const isSuccess = (code: unknown) =>
    (typeof code === 'number' || typeof code === 'string') &&
    codes.some(each => readsAs(each, code))
  let number = 500
  while (isSuccess(number)) number++
  const spare = typeof successCode === 'string' ? String(number) : number
  return {
    isSuccess,
    firstOther: (...candidates) => candidates.find(code => !isSuccess(code)) ?? spare
  }
}
