/** The words by which routes of the operators' API say what they take, and what they answer. */
import { type TSchema, type TStringOptions, Type } from 'typebox'

export const maxNameLength = 255

export const { Boolean: flag, Object: object, Optional: optional, Union: union } = Type
export const text = (description = '', more: TStringOptions = {}) =>
  Type.String({ ...more, ...(description !== '' && { description }) })
export const name = (description: string) =>
  text(description, { minLength: 1, maxLength: maxNameLength })
export const like = (pattern: string, description: string) => text(description, { pattern })
export const time = text('', { format: 'date-time' })
export const number = (description: string) => Type.Number({ description })
export const count = Type.Integer({ minimum: 0 })
export const list = <T extends TSchema>(items: T, description = '') =>
  Type.Immutable(Type.Array(items, description === '' ? {} : { description }))
/** How long something holds: from a second to ten years. */
export const forMs = (otherwise: string) =>
  optional(
    Type.Integer({
      minimum: 1000,
      maximum: 3650 * 86_400_000,
      description: `Milliseconds; ${otherwise} without it.`
    })
  )
