/** Codes in the envelope: numbers or texts, compared as consoles compare them. */
import { Type } from 'typebox'

export type ResponseCode = number | string

export const responseCode = (meta: { description: string; [keyword: string]: unknown }) =>
  Type.Unsafe<ResponseCode>(
    Type.Union([Type.Integer(), Type.String({ minLength: 1, maxLength: 64 })], {
      expected: 'a whole number or a text',
      ...meta
    })
  )

/** Whether some console takes the two for the same: by `===`, `==`, as texts or as numbers. */
export function readsAs(a: ResponseCode, b: ResponseCode): boolean {
  return String(a) === String(b) || Number(a) === Number(b)
}
